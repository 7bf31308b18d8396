"""Control groups, version 2 where delegated and version 1 for root: limits on the sum of a sandbox's processes."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["cgroup-v2", "cgroup-v1", "rlimits"]
V1_CONTROLLERS = ("memory", "pids", "cpuacct")
V2_CONTROLLERS = ("memory", "pids", "cpu")
PREFIX = "inloop-"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where this machine lets us make groups."""

    kind: Kind
    parents: dict[str, str] = field(default_factory=dict)
    """Controller -> folder to make groups in; one entry named 'unified' for version 2."""
    why: str = ""
    """Why there is nothing better, for the person who reads the probe."""


NONE = Hierarchy("rlimits")


@dataclass(frozen=True, slots=True)
class Counters:
    """Since the group was made, so differences are what counts; None where the kernel does not tell."""

    cpu_seconds: float = 0.0
    memory_mb: float = 0.0
    peak_mb: float = 0.0
    oom_kills: int = 0
    forks_refused: int = 0


def find(mounts: str = "/proc/self/mounts", own: str = "/proc/self/cgroup") -> Hierarchy:
    """The best hierarchy that can be written here."""
    folders = _mounted(Path(mounts).read_text())
    places = dict(_own_places(Path(own).read_text()))
    why = []
    if "unified" in folders:
        parent = folders["unified"] + places.get("", "/").rstrip("/")
        reason = _v2_unusable(Path(parent))
        if not reason:
            return Hierarchy("cgroup-v2", {"unified": parent})
        why.append(f"cgroup v2: {reason}")
    parents = {c: folders[c] + places.get(c, "/").rstrip("/") for c in V1_CONTROLLERS if c in folders}
    if len(parents) == len(V1_CONTROLLERS):
        if all(_can_make_group(Path(p)) for p in parents.values()):
            return Hierarchy("cgroup-v1", parents)
        why.append("cgroup v1: not writable")
    return Hierarchy("rlimits", why="; ".join(why) or "no cgroup file system is mounted")


def _mounted(text: str) -> dict[str, str]:
    folders: dict[str, str] = {}
    for line in text.splitlines():
        _, where, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            folders.setdefault("unified", where)
        elif kind == "cgroup":
            folders.update({c: where for c in options.split(",") if c in V1_CONTROLLERS})
    return folders


def _own_places(text: str) -> list[tuple[str, str]]:
    out = []
    for line in filter(None, text.splitlines()):
        _, controllers, place = line.split(":", 2)
        out += [(c, place) for c in controllers.split(",")]
    return out


def _can_make_group(parent: Path) -> bool:
    trial = parent / f"{PREFIX}trial-{os.getpid()}-{time.monotonic_ns()}"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError:
        return False
    return True


def _v2_unusable(parent: Path) -> str:
    """Why groups with limits can't be made under `parent`; '' when they can. Enables the controllers."""
    try:
        have = (parent / "cgroup.controllers").read_text().split()
        if missing := [c for c in V2_CONTROLLERS if c not in have]:
            return f"no {' or '.join(missing)} controller in {parent}"
        on = (parent / "cgroup.subtree_control").read_text().split()
        wanted = [c for c in V2_CONTROLLERS if c not in on]
        if wanted:
            _leave_alone(parent)
            (parent / "cgroup.subtree_control").write_text(" ".join(f"+{c}" for c in wanted))
    except OSError as error:
        return f"{parent}: {error.strerror}"
    return "" if _can_make_group(parent) else f"{parent} is not writable"


def _leave_alone(parent: Path) -> None:
    """A group with processes can't have limited children: when all of them are ours, move into a leaf first."""
    pids = [int(p) for p in (parent / "cgroup.procs").read_text().split()]
    if pids == [os.getpid()]:
        leaf = parent / f"{PREFIX}main"
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text(str(os.getpid()))


@dataclass(frozen=True, slots=True)
class Events:
    memory: int
    pids: int

    def read(self) -> tuple[int, int]:
        """(processes killed for memory, forks refused) since the group was made."""
        return _field_of(_text(self.memory), "oom_kill"), _field_of(_text(self.pids), "max")

    def close(self) -> None:
        for fd in (self.memory, self.pids):
            if fd >= 0:
                os.close(fd)


class Group:
    """One sandbox's group; in version 1 a folder in each controller's tree."""

    def __init__(self, hierarchy: Hierarchy, name: str) -> None:
        self.kind = hierarchy.kind
        self.folders = {c: Path(p) / f"{PREFIX}{name}" for c, p in hierarchy.parents.items()}

    def create(self) -> None:
        for folder in self.folders.values():
            folder.mkdir(exist_ok=True)

    def enter(self, pid: int) -> None:
        for folder in self.folders.values():
            _write(folder / "cgroup.procs", pid)

    def leave(self, pid: int) -> None:
        """Back to the parent groups, so that this group can be removed."""
        for folder in self.folders.values():
            leaf = folder.parent / f"{PREFIX}main"
            _write((leaf if leaf.exists() else folder.parent) / "cgroup.procs", pid)

    def limit(self, memory_mb: int, processes: int) -> None:
        size = memory_mb << 20
        if self.kind == "cgroup-v2":
            folder = self.folders["unified"]
            _write(folder / "memory.max", size)
            _write(folder / "memory.swap.max", 0, may_fail=True)
            _write(folder / "pids.max", processes)
        elif self.kind == "cgroup-v1":
            memory = self.folders["memory"]
            swap = memory / "memory.memsw.limit_in_bytes"
            _write(memory / "memory.limit_in_bytes", size, may_fail=True)  # refused while above the old swap limit
            _write(swap, size, may_fail=True)
            _write_when_free(memory, size)
            _write(self.folders["pids"] / "pids.max", processes)

    def counters(self) -> Counters:
        if self.kind == "cgroup-v2":
            folder = self.folders["unified"]
            return Counters(
                cpu_seconds=_field(folder / "cpu.stat", "usage_usec") / 1e6,
                memory_mb=_number(folder / "memory.current") / 2**20,
                peak_mb=_number(folder / "memory.peak") / 2**20,
                oom_kills=_field(folder / "memory.events", "oom_kill"),
                forks_refused=_field(folder / "pids.events", "max"),
            )
        if self.kind == "cgroup-v1":
            memory = self.folders["memory"]
            return Counters(
                cpu_seconds=_number(self.folders["cpuacct"] / "cpuacct.usage") / 1e9,
                memory_mb=_number(memory / "memory.usage_in_bytes") / 2**20,
                peak_mb=_number(memory / "memory.max_usage_in_bytes") / 2**20,
                oom_kills=_field(memory / "memory.oom_control", "oom_kill"),
                forks_refused=_field(self.folders["pids"] / "pids.events", "max"),
            )
        return Counters()

    def events(self) -> Events:
        """An open view of the two counters that are read around each command."""
        if self.kind == "cgroup-v2":
            folder = self.folders["unified"]
            return Events(_opened(folder / "memory.events"), _opened(folder / "pids.events"))
        if self.kind == "cgroup-v1":
            memory = self.folders["memory"] / "memory.oom_control"
            return Events(_opened(memory), _opened(self.folders["pids"] / "pids.events"))
        return Events(-1, -1)

    def forget_peak(self) -> None:
        """Start the peak anew, where the kernel can (version 1)."""
        if self.kind == "cgroup-v1":
            _write(self.folders["memory"] / "memory.max_usage_in_bytes", 0, may_fail=True)

    def pids(self) -> list[int]:
        found: set[int] = set()
        for folder in self.folders.values():
            with contextlib.suppress(OSError):
                found.update(int(p) for p in (folder / "cgroup.procs").read_text().split())
        return sorted(found)

    def remove(self, patience: float = 2.0) -> list[str]:
        """Remove the empty group; what is still there when patience runs out."""
        left = []
        end = time.monotonic() + patience
        for folder in self.folders.values():
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError:
                    if time.monotonic() > end:
                        left.append(str(folder))
                        break
                    time.sleep(0.01)
        return left


def _write(path: Path, value: int, *, may_fail: bool = False) -> None:
    try:
        path.write_text(str(value))
    except OSError:
        if not may_fail:
            raise


def _write_when_free(memory: Path, size: int) -> None:
    """What the sandbox before held may still be on its way back: a lower limit is refused (EBUSY) until it is."""
    for _ in range(60):
        try:
            (memory / "memory.limit_in_bytes").write_text(str(size))
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        _write(memory / "memory.force_empty", 0, may_fail=True)
        time.sleep(0.05)
    _write(memory / "memory.limit_in_bytes", size)


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _field(path: Path, name: str) -> int:
    try:
        return _field_of(path.read_text(), name)
    except OSError:
        return 0


def _field_of(text: str, name: str) -> int:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdigit():
            return int(value)
    return 0


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _text(fd: int) -> str:
    return os.pread(fd, 4096, 0).decode() if fd >= 0 else ""
