"""CPU time of other processes, read from the kernel by a parent that runs none of their code."""

from __future__ import annotations

import os
import time
from pathlib import Path


def clock_of(pid: int) -> float:
    """CPU seconds of a live process and its threads; 0 when it is gone."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def cpu_of(pid: int, known: set[int]) -> float:
    """CPU seconds of `pid`, of the children that it waited for, and of every process that is not `known`."""
    return clock_of(pid) + _waited(pid) + sum(clock_of(p) for p in _all() if p not in known)


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 (once a test: no Path objects)


def _waited(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
