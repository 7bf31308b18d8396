"""Command mode: a program's exit code and time decide. Weaker: the program that judges shares a process tree, and a
file system, with what it judges."""

from __future__ import annotations

import contextlib
import socket

from inloop.sandbox.base import Diff
from inloop.sandbox.launch import Bind, Launch, launch
from inloop.tasks.task import Task
from inloop.types import Reward, TestOutcome, Verdict
from inloop.verify import place
from inloop.verify.record import Status
from inloop.verify.split import HOST_FD, lay

ID = "command"
WEAKER = "weaker check: only the exit code and the time of a command, which the submission can influence"


def run(task: Task, diff: Diff) -> Reward:
    """Lay the submission, then run the task's command over the same layer. Raises VerifierFault, SandboxFault."""
    spec = task.verify
    host, inside = socket.socketpair()
    with contextlib.closing(host), contextlib.closing(inside):
        start = Launch(
            argv=place.program("layer", str(HOST_FD)), fds={HOST_FD: inside.fileno()}, cwd=place.WORKSPACE,
            mounts=(place.code(), *place.workspace(task), Bind(task.tests, "/tests")), owner=task.id,
            limits=place.limits(task, 1),
        )  # fmt: skip
        with launch(start) as sandbox:
            inside.close()
            dropped = lay(host, place.lay_job(task, diff), sandbox)
            sandbox.wait(10)
            sandbox.kill()
            sandbox.start(spec.command, {})
            code = sandbox.wait(spec.wall_seconds)
            sandbox.kill(deadline=code is None)
            usage = sandbox.usage()
    late = code is None or usage.cpu_seconds > spec.cpu_seconds or usage.met == "cpu"
    status: Status = "timeout" if late else "passed" if code == 0 else "failed"
    detail = "" if code == 0 and not late else f"exit code {code}, {usage.cpu_seconds:.2f} s of CPU time"
    outcome = TestOutcome(id=ID, status=status, cpu_seconds=round(usage.cpu_seconds, 4), detail=detail)
    verdicts = {"passed": Verdict.PASSED, "timeout": Verdict.TIMEOUT}
    notes = [WEAKER, *(f"not laid: {d}" for d in dropped)]
    notes += [f"met the limit of {usage.met}"] if usage.met else []
    return Reward(
        value=float(status == "passed"), verdict=verdicts.get(status, Verdict.FAILED), mode="command",
        fraction=float(status == "passed"), tests=(outcome,),
        evidence=tuple(notes),
    )  # fmt: skip
