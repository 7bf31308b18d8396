"""The processes of one sandbox, seen and killed from outside through the sandbox's own /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass

INIT = 1
TICKS = os.sysconf("SC_CLK_TCK")
ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    """Inside the sandbox."""
    parent: int
    state: str
    cpu_seconds: float
    """Its own and that of its dead children that were waited for."""


@dataclass(frozen=True, slots=True)
class Processes:
    proc: int
    """A descriptor of the sandbox's /proc."""
    shell: int
    """The kept bash: never a target, and what it started is not spared for its sake."""

    def pids(self) -> set[int]:
        return {int(name) for name in os.listdir(self.proc) if name.isdigit()}  # noqa: PTH208 (a descriptor)

    def table(self) -> dict[int, Process]:
        out = {}
        for pid in self.pids():
            with contextlib.suppress(OSError, ValueError, IndexError):
                out[pid] = self._process(pid)
        return out

    def _process(self, pid: int) -> Process:
        fields = self._text(f"{pid}/stat").rpartition(")")[2].split()
        cpu = sum(int(ticks) for ticks in fields[11:15]) / TICKS
        return Process(pid, int(fields[1]), fields[0], cpu)

    def _text(self, name: str) -> str:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.proc)
        try:
            return os.read(fd, 4096).decode("utf-8", "replace")
        finally:
            os.close(fd)

    def memory_mb(self) -> float:
        """Resident memory of all, with pages of files counted once per process: an upper bound by polling."""
        pages = 0
        for pid in self.pids():
            with contextlib.suppress(OSError, ValueError, IndexError):
                size, shared = self._text(f"{pid}/statm").split()[1:3]
                pages += int(size) - int(shared)
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def kill_new(self, before: set[int]) -> bool:
        """Kill all that a command started: whatever was not there `before` it and descends from nothing that was.

        A parent before its children: a shell whose command was killed would go on with the rest of the line.
        False when new ones keep coming; then the whole sandbox has to end."""
        for _ in range(ROUNDS):
            targets = self._new(before)
            if not targets:
                return True
            for pid in targets:
                self.kill(pid)
            time.sleep(0.002)
        return not self._new(before)

    def _new(self, before: set[int]) -> list[int]:
        ours = {INIT, self.shell}
        table, spared = self.table(), before - ours
        found = [
            pid
            for pid, process in table.items()
            if pid not in before | ours and process.state not in "ZX" and not _descends(pid, spared, table)
        ]
        return sorted(found, key=lambda pid: len(_ancestors(pid, table)))

    def kill(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            fd = os.open(str(pid), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.proc)
            try:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            finally:
                os.close(fd)


def _descends(pid: int, ancestors: set[int], table: dict[int, Process]) -> bool:
    return not ancestors.isdisjoint(_ancestors(pid, table))


def _ancestors(pid: int, table: dict[int, Process]) -> list[int]:
    """The parent first; a table read while processes come and go may hold a ring."""
    out: list[int] = []
    while (process := table.get(pid)) and pid != INIT and process.parent not in out:
        pid = process.parent
        out.append(pid)
    return out
