"""Read a child's output until the child itself ends: capped, with a deadline, never held up by what it left behind."""

from __future__ import annotations

import os
import select
import subprocess
import time
from dataclasses import dataclass

from inloop.sandbox.base import CommandResult, LimitName
from inloop.sandbox.output import STOP_FACTOR, Clip


@dataclass(frozen=True, slots=True)
class Followed:
    stdout: Clip
    stderr: Clip
    limit: LimitName
    """'wall' or 'output' when the child has to be killed."""

    def result(self, code: int, seconds: float, limit: LimitName = "") -> CommandResult:
        """`code`: as subprocess gives it, negative for a signal."""
        limit = self.limit or limit
        return CommandResult(
            exit_code=124 if limit == "wall" else code if code >= 0 else 128 - code,
            stdout=self.stdout.text(),
            stderr=self.stderr.text(),
            seconds=seconds,
            limit=limit,
            clipped=self.stdout.clipped or self.stderr.clipped,
        )


def follow(process: subprocess.Popen[bytes], deadline: float, keep: int, held: list[int] | None = None) -> Followed:
    """`process` has pipes for both outputs, which are closed here; `deadline` is on time.monotonic().

    With `held`, copies of the read ends go there, so that what the child left behind can write on; see `drain`."""
    assert process.stdout is not None and process.stderr is not None
    pipes = {process.stdout.fileno(): Clip(keep), process.stderr.fileno(): Clip(keep)}
    pidfd = os.pidfd_open(process.pid)
    try:
        for fd in pipes:
            os.set_blocking(fd, False)
        limit = _until_end(pidfd, pipes, deadline, STOP_FACTOR * keep)
        for fd, clip in pipes.items():
            for _ in range(64):  # what a background process goes on to write has no end
                if not _read(fd, clip):
                    break
    finally:
        os.close(pidfd)
        if held is not None:
            held += [os.dup(fd) for fd in pipes]
        process.stdout.close()
        process.stderr.close()
    stdout, stderr = pipes.values()
    return Followed(stdout, stderr, limit)


def drain(held: list[int]) -> None:
    """Throw away what was written since, so that no writer blocks; forget the pipes that nobody writes to."""
    for fd in list(held):
        try:
            while os.read(fd, 1 << 16):
                pass
            held.remove(fd)
            os.close(fd)
        except BlockingIOError:
            continue


def _until_end(pidfd: int, pipes: dict[int, Clip], deadline: float, most: int) -> LimitName:
    poll = select.poll()
    for fd in (pidfd, *pipes):
        poll.register(fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll(max(0, int((deadline - time.monotonic()) * 1000) + 1))}
        for fd in ready - {pidfd}:
            if not _read(fd, pipes[fd]):
                poll.unregister(fd)
        if pidfd in ready:
            return ""
        if time.monotonic() >= deadline:
            return "wall"
        if max(clip.total for clip in pipes.values()) > most:
            return "output"


def _read(fd: int, clip: Clip) -> bool:
    """False when there is nothing to read."""
    try:
        data = os.read(fd, 1 << 16)
    except BlockingIOError:
        return False
    clip.add(data)
    return bool(data)
