"""The default backend: one bubblewrap sandbox an episode, with a kept shell inside and an overlay as its workspace."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import threading
import time
from dataclasses import dataclass

from inloop.errors import SandboxFault, TaskError
from inloop.sandbox import cgroup, collect, installed, launch, shell, slots
from inloop.sandbox.base import CommandResult, Diff, Isolation, LimitName, SandboxSpec
from inloop.sandbox.output import Clip
from inloop.sandbox.processes import Processes
from inloop.sandbox.tree import Tree

READY_SECONDS = 20.0
GRACE = 0.5
"""Seconds for bubblewrap to report how the shell ended."""
RESTARTED = "[the sandbox was restarted: processes and /tmp are gone, the workspace is kept]\n"
TELL_TALE: tuple[tuple[str, LimitName], ...] = (
    ("No space left on device", "disk"),
    ("File too large", "file"),
    ("File size limit exceeded", "file"),
    ("Cannot allocate memory", "memory"),
    ("MemoryError", "memory"),
    ("fork: retry: Resource temporarily unavailable", "processes"),
    ("can't start new thread", "processes"),
)
"""What a failed command says about a limit that the kernel does not report; information, never evidence."""
SIGNALLED: dict[int, LimitName] = {128 + 24: "cpu", 128 + 25: "file"}


class Bubblewrap:
    name = "bubblewrap"

    def probe(self) -> Isolation:
        """Starts one sandbox and runs the interpreter in it."""
        spec = launch.Launch(argv=("python3", "-I", "-c", "pass"), owner="probe")
        with launch.launch(spec) as trial:
            code = trial.wait(READY_SECONDS)
            if code is None:
                trial.kill(deadline=True)
        if code != 0:
            said = trial.complaints.strip() or f"exit code {code}"
            raise SandboxFault(f"a trial sandbox failed: {said}", fix=slots.FIX_NAMESPACES)
        return launch.isolation()

    def open(self, spec: SandboxSpec) -> BubblewrapSandbox:
        return BubblewrapSandbox(spec)


@dataclass(slots=True)
class _Inside:
    """What belongs to one start; a restart makes a new one."""

    shell: shell.Shell
    processes: Processes
    tree: Tree

    def close(self) -> None:
        self.shell.close()
        os.close(self.processes.proc)
        os.close(self.tree.folder)


class BubblewrapSandbox:
    def __init__(self, spec: SandboxSpec) -> None:
        self.spec, self.workdir, self.limits = spec, spec.workdir, spec.limits
        self._lock = threading.RLock()
        self._closed = False
        self._inside: _Inside | None = None
        self._began = time.monotonic()
        self._launched = self._mounted()
        self.isolation = self._launched.isolation
        self.id = self._launched.lease.id
        self._cpu_before = self._launched.counters().cpu_seconds
        self._events = self._launched.group.events()
        try:
            self._start(self._first_state())
            self._set_up()
        except BaseException:
            self.close()
            raise
        self._began = time.monotonic()

    # starting, restarting

    def _mounted(self) -> launch.Launched:
        mounts: tuple[launch.Mount, ...] = (
            launch.Overlay(self.spec.workspace, self.workdir),
            launch.Control(shell.CONTROL),
            *installed.hide(self.spec.workspace),
            *(launch.Bind(source, target, mapped=False) for source, target in self.spec.mounts),
        )
        return launch.launch(
            launch.Launch(
                argv=(), mounts=mounts, env=self.spec.env, limits=self.limits, owner=self.spec.owner
            )
        )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        return {**launch.base_env(), **self.spec.env}

    def _first_state(self) -> bytes:
        lines = [f"cd -- {shlex.quote(self.workdir)}"]
        lines += [f"declare -x {name}={shlex.quote(value)}" for name, value in self._environment().items()]
        return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")

    def _start(self, state: bytes) -> None:
        """New processes over the same layer. Raises SandboxFault."""
        launched = self._launched
        ours, theirs = socket.socketpair()
        try:
            own_uid = launched.slot.uid != os.geteuid()
            shell.prepare(launched.controls[0], processes=None if own_uid else self.limits.processes)
            launched.start(shell.ARGV, {3: theirs.fileno()}, limit_inside=False)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        home = f"cd -- {shlex.quote(self.workdir)}\n".encode()
        kept = shell.Shell(launched.controls[0], self.limits.output_bytes, state, home, ours, launched.pidfd)
        try:
            kept.wait_ready(READY_SECONDS)
            workspace, proc = launched.open_folders(self.workdir, "/proc")
        except (shell.Dead, SandboxFault):
            launched.kill()
            kept.close()
            said = launched.complaints.strip() or "the shell inside did not start"
            raise SandboxFault(f"sandbox: {said}", fix="`inloop sandbox probe` says what this machine allows") from None
        self._inside = _Inside(kept, Processes(proc, kept.pid), Tree(workspace, launched.slot.uid, self.workdir))

    def _end(self) -> None:
        if self._inside:
            self._inside.close()
            self._inside = None

    def _set_up(self) -> None:
        for command in self.spec.setup:
            result = self.run(command)
            if not result.ok:
                what = f"setup command failed: {command!r}: exit {result.exit_code} {result.limit}".rstrip()
                raise TaskError(f"{what}\n{result.stderr[-2000:]}", fix="mend `setup` of the task")

    # the protocol

    def run(self, command: str, *, timeout: float | None = None) -> CommandResult:
        with self._lock:
            inside = self._open_inside()
            self._launched.lease.beat()
            began = time.monotonic()
            left = self._began + self.limits.wall_seconds - began
            seconds = min(self.limits.command_seconds if timeout is None else timeout, left)
            if "\0" in command:
                return CommandResult(exit_code=2, stdout="", stderr="the command contains a NUL byte\n", seconds=0.0)
            if seconds <= 0:
                return CommandResult(exit_code=124, stdout="", stderr="", seconds=0.0, limit="wall")
            before = inside.processes.pids()
            counted = self._events.read()
            outcome = inside.shell.run(
                command, began + seconds, lambda: self._met(inside), lambda: self._stop(inside, before)
            )
            limit = outcome.limit or self._reported(counted) or _guessed(outcome)
            if outcome.dead:
                self._after_death(outcome, inside)
            return _result(outcome, limit, time.monotonic() - began)

    def _open_inside(self) -> _Inside:
        if self._closed or self._inside is None:
            raise SandboxFault("the sandbox is closed")
        return self._inside

    def _stop(self, inside: _Inside, before: set[int]) -> None:
        if not inside.processes.kill_new(before):
            self._launched.kill()

    def _after_death(self, outcome: shell.Outcome, inside: _Inside) -> None:
        """The agent (or a limit) ended the shell: go on in new processes. Only a failed restart is a fault."""
        if self._closed:
            raise SandboxFault("the sandbox was closed while a command ran")
        self._launched.wait(GRACE)
        self._launched.kill()
        if not outcome.limit:
            code = self._launched.exit_code
            outcome.code = code if code >= 0 else 128 - code
        self._end()
        self._start(inside.shell.state)
        outcome.stderr.add(RESTARTED.encode())

    # limits

    def _met(self, inside: _Inside) -> LimitName:
        """What no kernel limit ends: CPU time of the episode and, without a cgroup, memory of several processes."""
        if self.isolation.limits != "rlimits":
            spent = self._launched.counters().cpu_seconds - self._cpu_before
            return "cpu" if spent > self.limits.cpu_seconds else ""
        if sum(p.cpu_seconds for p in inside.processes.table().values()) > self.limits.cpu_seconds:
            return "cpu"
        return "memory" if inside.processes.memory_mb() > self.limits.memory_mb else ""

    def _reported(self, before: tuple[int, int]) -> LimitName:
        killed, refused = self._events.read()
        if killed > before[0]:
            return "memory"
        return "processes" if refused > before[1] else ""

    # files

    def read(self, path: str) -> bytes:
        with self._lock:
            return self._open_inside().tree.read(path)

    def write(self, path: str, data: bytes) -> None:
        with self._lock:
            self._open_inside().tree.write(path, data, file_mb=self.limits.file_mb)

    def diff(self) -> Diff:
        with self._lock:
            self._open_inside()
            return collect.collect_upper(self._launched.upper, self.spec.workspace)

    def reset(self) -> None:
        with self._lock:
            self._open_inside()
            self._end()
            self._launched.fresh()
            self._start(self._first_state())
            self._set_up()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            with contextlib.suppress(SandboxFault):
                self._launched.kill()  # ends a command that another thread runs
        with self._lock:
            self._end()
            self._events.close()
            self._events = cgroup.Events(-1, -1)
            self._launched.close()


def _guessed(outcome: shell.Outcome) -> LimitName:
    if outcome.code == 0:
        return ""
    said = outcome.stderr.text() + outcome.stdout.text()
    return next((limit for words, limit in TELL_TALE if words in said), SIGNALLED.get(outcome.code, ""))


def _result(outcome: shell.Outcome, limit: LimitName, seconds: float) -> CommandResult:
    return CommandResult(
        exit_code=124 if limit == "wall" else outcome.code,
        stdout=outcome.stdout.text(),
        stderr=_as_bash_says(outcome.stderr),
        seconds=seconds,
        limit=limit,
        clipped=outcome.stdout.clipped or outcome.stderr.clipped,
    )


def _as_bash_says(clip: Clip) -> str:
    return clip.text().replace(f"{shell.CONTROL}/cmd: line ", "bash: line ")
