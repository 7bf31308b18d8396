"""Forked mode: tests and submission in forks of a warm parent that never imported the submission."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any

from inloop.sandbox.base import Diff
from inloop.sandbox.launch import Launch, Launched, launch
from inloop.tasks.task import Task
from inloop.verify import place
from inloop.verify.halves import Half
from inloop.verify.inside.wire import Channel, WireError
from inloop.verify.record import Run
from inloop.verify.split import HOST_FD, Ran, lay
from inloop.verify.tree import TestTree


def run(task: Task, tree: TestTree, diff: Diff, halves: list[Half]) -> Ran:
    """Raises VerifierFault or SandboxFault on host-side evidence that the infrastructure failed."""
    deadline = time.monotonic() + task.verify.wall_seconds
    host, inside = socket.socketpair()
    with contextlib.closing(host), contextlib.closing(inside):
        spec = Launch(
            argv=place.program("parent", str(HOST_FD), *place.site_folders()),
            mounts=(place.code(), *place.site_mounts(), *place.workspace(task)), fds={HOST_FD: inside.fileno()},
            limits=place.limits(task, len(task.verify.expected) * len(halves)), cwd=place.WORKSPACE, owner=task.id,
        )  # fmt: skip
        with launch(spec) as sandbox:
            inside.close()
            ran = Ran([], dropped=lay(host, place.lay_job(task, diff), sandbox))
            for half in halves:
                told = Run()
                ran.runs.append(told)
                ran.timed_out = ran.timed_out or _one_half(Channel(host), task, tree, half, told, deadline)
            _finish(ran, sandbox)
            return ran


def _one_half(channel: Channel, task: Task, tree: TestTree, half: Half, told: Run, deadline: float) -> bool:
    """Run a half; after a test that ended its process, the rest of it in a fresh fork. True when time was up."""
    job = {
        "files": {name: data.hex() for name, data in tree.hidden(half.files).items()},
        "tests": list(half.files), "plugins": list(task.meta.get("pytest_plugins", [])),
        "cpu": task.verify.cpu_seconds, "only": None,
    }  # fmt: skip
    while True:
        if _round(channel, job, told, deadline):
            return True
        left = told.left()
        if told.ended or not told.died or not left or told.resumed > len(told.collected):
            return False
        told.resumed += 1
        job["only"] = left


def _round(channel: Channel, job: dict[str, Any], told: Run, deadline: float) -> bool:
    try:
        channel.send(job)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            channel.sock.settimeout(left)
            message = channel.receive()
            if message == ["over"]:
                return False
            told.take(message)
    except WireError:
        told.odd += 1
    except EOFError:
        told.died = True
        return time.monotonic() >= deadline
    return False


def _finish(ran: Ran, sandbox: Launched) -> None:
    sandbox.kill(deadline=ran.timed_out)
    usage = sandbox.usage()
    ran.met, ran.cpu_seconds, ran.peak_memory_mb = usage.met, usage.cpu_seconds, usage.peak_memory_mb
