"""Agents that bring their own loop, unmodified, in our sandbox and behind the capture proxy."""

from __future__ import annotations

import fcntl
import shlex
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from inloop.errors import EngineFault, InloopError, SandboxFault
from inloop.files import write_atomic
from inloop.harness.capture import SOCKET, CaptureGateway
from inloop.harness.config import HarnessConfig
from inloop.harness.loop import Cancel
from inloop.sandbox.base import CommandResult, Sandbox, SandboxSpec
from inloop.tasks.task import Limits, Task
from inloop.trace.trajectory import Node
from inloop.types import StopReason

PORT = 8100
"""On the loopback of the sandbox's own network namespace, where nothing else listens."""
RELAY = "/run/relay"
FORWARDER = """
import socket, sys, threading
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    try:
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    client, _ = listener.accept()
    upstream = socket.socket(socket.AF_UNIX)
    upstream.connect(sys.argv[2])
    for pair in ((client, upstream), (upstream, client)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""
"""From a TCP port, which is all that most agents can speak to, to the socket that is mounted in."""


class ExternalAgent(Protocol):
    """One small file an agent."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def folders(self) -> tuple[Path, ...]:
        """What the sandbox has to see, read only, at the same path; installed on first use."""
        ...

    def command(self, instruction: str, model: str, url: str, key: str) -> str:
        """A shell command, run in the workspace, that works until the agent stops."""
        ...

    def stop(self, result: CommandResult) -> StopReason:
        """What the end of the command means."""
        ...


def roomy(limits: Limits) -> Limits:
    """An agent's own interpreter and libraries need more than a task's commands."""
    return replace(
        limits,
        memory_mb=max(limits.memory_mb, 2048),
        processes=max(limits.processes, 256),
        command_seconds=limits.wall_seconds,
        cpu_seconds=max(limits.cpu_seconds, limits.wall_seconds),
        output_bytes=max(limits.output_bytes, 65_536),
    )


@dataclass(kw_only=True)
class ExternalEpisode:
    """One run of an external agent on one task; leaves behind the same things as an `Episode`."""

    task: Task
    sandbox: Sandbox
    gateway: CaptureGateway
    agent: ExternalAgent
    config: HarnessConfig
    key: str = ""
    cancel: Cancel = field(default_factory=Cancel)
    nodes: list[Node] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    timings: dict[str, float] = field(default_factory=dict)
    events: list[dict[str, object]] = field(default_factory=list)
    stop: StopReason | None = None

    def run(self) -> StopReason:
        """Raises nothing that belongs to the agent, the engine or the sandbox: that is the stop reason."""
        session = self.gateway.open(self.key, max_calls=self.config.max_turns)
        started = time.monotonic()
        try:
            stop = self._work(session)
        except (SandboxFault, EngineFault) as fault:
            family = StopReason.SANDBOX_FAULT if isinstance(fault, SandboxFault) else StopReason.ENGINE_FAULT
            stop = StopReason.CANCELLED if self.cancel.is_set() else family
            self.events.append({"kind": stop.value, "message": fault.message[:500]})
        finally:
            self.timings["agent"] = round(time.monotonic() - started, 4)
            over_budget = self._keep(session)
        self.stop = StopReason.TURN_LIMIT if over_budget and not stop.is_fault else stop
        return self.stop

    def _work(self, session: str) -> StopReason:
        self._start_forwarder()
        url = f"http://127.0.0.1:{PORT}/v1"
        command = self.agent.command(self.task.instruction.strip(), self.gateway.model, url, session)
        limit = min(self.config.wall_seconds, self.task.limits.wall_seconds)
        result = self.sandbox.run(command, timeout=limit)
        self.events.append({"kind": "agent_ended", "exit_code": result.exit_code, "tail": result.stdout[-500:]})
        if self.cancel.is_set():
            return StopReason.CANCELLED
        return StopReason.DEADLINE if result.limit == "wall" else self.agent.stop(result)

    def _start_forwarder(self) -> None:
        """It lives until the sandbox is closed. Raises SandboxFault when it does not come up."""
        start = (
            f"(python3 -I -S -c {shlex.quote(FORWARDER)} {PORT} {RELAY}/{SOCKET} >/tmp/.relay 2>&1 &) ; "
            "for i in $(seq 100); do grep -q ready /tmp/.relay 2>/dev/null && exit 0; sleep 0.05; done; "
            "cat /tmp/.relay; exit 1"
        )
        started = self.sandbox.run(f"( {start} )", timeout=10)
        if not started.ok:
            raise SandboxFault(f"the relay inside the sandbox did not start: {started.stdout[-200:]}")

    def _keep(self, session: str) -> bool:
        capture = self.gateway.finish(session)
        self.nodes = capture.nodes
        sampled = [n for n in self.nodes if n.sampled]
        self.counts.update(
            turns=capture.calls, sampled_tokens=sum(len(n.token_ids or ()) for n in sampled), forks=capture.forks
        )
        return capture.over_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """An agent and the proxy that its model calls go through; takes the place of our own loop in a rollout."""

    agent: ExternalAgent
    gateway: CaptureGateway

    def furnish(self, spec: SandboxSpec) -> SandboxSpec:
        """With room for the agent, its folders and the way to the proxy."""
        folders = tuple((folder, str(folder)) for folder in self.agent.folders())
        mounts = (*spec.mounts, (self.gateway.folder, RELAY), *folders)
        return replace(spec, limits=roomy(spec.limits), mounts=mounts)

    def episode(
        self, *, task: Task, sandbox: Sandbox, config: HarnessConfig, key: str, cancel: Cancel
    ) -> ExternalEpisode:
        return ExternalEpisode(
            task=task, sandbox=sandbox, gateway=self.gateway, agent=self.agent, config=config, key=key, cancel=cancel
        )


class Installed:
    """Package of an agent in a virtual environment of its own, made once under the cache folder."""

    def __init__(self, requirement: str, folder: Path) -> None:
        self.requirement, self.folder = requirement, folder

    def ensure(self) -> Path:
        """Raises InloopError when it can't be installed; what a stopped install left is made anew."""
        done = self.folder / ".complete"
        if not done.exists():
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with (self.folder.parent / ".lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be at it: wait, then look again
                if not done.exists():
                    self._install()
                    write_atomic(done, self.requirement)
        return self.folder

    def _install(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)
        pip = [str(self.folder / "bin/python"), "-m", "pip", "install", "-q", self.requirement]
        tried = subprocess.run(pip, capture_output=True, text=True)
        if tried.returncode:
            raise InloopError(
                f"{self.requirement} can't be installed: {tried.stderr.strip()[-300:]}",
                fix="is a package index reachable? `pip download` it by hand to see",
            )
