"""Split mode: hidden tests in a trusted process, the submission in a sandbox of its own; only plain values cross."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from inloop.errors import VerifierFault
from inloop.sandbox.base import Diff
from inloop.sandbox.launch import Launch, Launched, launch
from inloop.tasks.task import Task
from inloop.verify import place, tester
from inloop.verify.halves import Half
from inloop.verify.inside.wire import Channel, WireError
from inloop.verify.record import Run
from inloop.verify.tree import TestTree

HOST_FD = 3
START_SECONDS = 60.0
MAX_MESSAGES = 200_000


@dataclass(slots=True)
class Ran:
    """What the halves told, and what the host saw of the sandbox."""

    runs: list[Run]
    timed_out: bool = False
    dropped: list[str] = field(default_factory=list)
    """Changes that could not be laid over the workspace."""
    met: str = ""
    """A limit of the submission's sandbox that the kernel enforced."""
    cpu_seconds: float = 0.0
    peak_memory_mb: float = 0.0
    """Of the submission's sandbox."""


def run(task: Task, tree: TestTree, diff: Diff, halves: list[Half]) -> Ran:
    """Raises VerifierFault or SandboxFault on host-side evidence that the infrastructure failed."""
    deadline = time.monotonic() + task.verify.wall_seconds
    trusted = tester.shared()
    with contextlib.ExitStack() as stack:
        host, inside = _pair(stack)
        meters = [_pair(stack) for _ in halves]
        fds = {HOST_FD: inside.fileno()} | {HOST_FD + 1 + n: theirs.fileno() for n, (_, theirs) in enumerate(meters)}
        spec = Launch(
            argv=place.program("worker", *map(str, fds)), mounts=(place.code(), *place.workspace(task)), fds=fds,
            limits=place.limits(task, len(task.verify.expected) * len(halves)), cwd=place.WORKSPACE, owner=task.id,
        )  # fmt: skip
        worker = stack.enter_context(launch(spec))
        jobs = [_submit(stack, trusted, task, tree, half, ours) for half, (ours, _) in zip(halves, meters, strict=True)]
        for sock in (inside, *(s for pair in meters for s in pair)):
            sock.close()
        dropped = lay(host, place.lay_job(task, diff), worker)
        ran = Ran([Run() for _ in halves], dropped=dropped)
        ran.timed_out = _listen(jobs, ran.runs, deadline)
        _finish(ran, worker, trusted)
        return ran


def _pair(stack: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    stack.callback(ours.close)
    stack.callback(theirs.close)
    return ours, theirs


def _submit(
    stack: contextlib.ExitStack, trusted: tester.Tester, task: Task, tree: TestTree, half: Half, meter: socket.socket
) -> Channel:
    ours, theirs = _pair(stack)
    trusted.submit(theirs, meter)
    theirs.close()
    channel = Channel(ours)
    ours.settimeout(START_SECONDS)
    files = tree.pristine | tree.hidden(half.files)
    with contextlib.suppress(EOFError):
        channel.send(
            {
                "files": {name: data.hex() for name, data in files.items()},
                "tests": list(half.files), "modules": list(task.verify.modules), "path": place.extra_paths(task),
                "plugins": list(task.meta.get("pytest_plugins", [])), "cpu": task.verify.cpu_seconds,
                "wall": task.verify.wall_seconds, "memory": tester.RUN_MEMORY,
            }
        )  # fmt: skip
    return channel


def lay(host: socket.socket, job: dict[str, Any], sandbox: Launched) -> list[str]:
    """Send the submission in; nothing of it has run when the answer comes, so no answer is the machine's fault."""
    host.settimeout(START_SECONDS)
    channel = Channel(host)
    try:
        channel.send(job)
        kind, dropped = channel.receive()
    except (EOFError, WireError, ValueError):
        sandbox.kill()
        raise VerifierFault(
            f"the verifying sandbox did not start: {sandbox.complaints[-500:] or 'no answer'}"
        ) from None
    assert kind == "ready"
    return [str(d) for d in dropped]


def _listen(jobs: list[Channel], runs: list[Run], deadline: float) -> bool:
    """Take messages until every run is over; True when the deadline came first."""
    waiting = {job.sock.fileno(): (job, run) for job, run in zip(jobs, runs, strict=True)}
    while waiting:
        left = deadline - time.monotonic()
        if left <= 0:
            return True
        for fd in select.select(list(waiting), [], [], left)[0]:
            job, told = waiting[fd]
            job.sock.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                told.take(job.receive())
            except (EOFError, WireError):
                del waiting[fd]
    return False


def _finish(ran: Ran, worker: Launched, trusted: tester.Tester) -> None:
    worker.kill(deadline=ran.timed_out)
    usage = worker.usage()
    ran.met, ran.cpu_seconds, ran.peak_memory_mb = usage.met, usage.cpu_seconds, usage.peak_memory_mb
    if not trusted.alive and not all(run.ended for run in ran.runs):
        raise VerifierFault("the test process was ended from outside")
