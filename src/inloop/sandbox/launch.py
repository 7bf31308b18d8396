"""Start one program in a fresh bubblewrap sandbox: the low level below both the episode sandbox and the verifier.

    with launch(Launch(argv=("python", "-I", "/job/run.py"), mounts=(Bind("/some/job", "/job"),))) as job:
        code = job.wait(10)

The program has its own namespaces, a system-call filter, limits, and (when we are root) a host uid of its own that
was dropped to before bubblewrap ran. It sees the read-only system, the running Python, its mounts, no more."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from inloop.errors import InloopError, SandboxFault
from inloop.sandbox import cgroup, lease, seccomp, slots
from inloop.sandbox.base import Isolation, LimitName
from inloop.tasks.task import Limits


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of the host, read only."""

    source: Path | str
    target: str
    mapped: bool = True
    """Owned by the sandbox's user inside, so that private files can be read there (root only; else as they are)."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """A folder that can be written to: `lower` is never changed, changes go to a layer of limited size."""

    lower: Path | str
    target: str
    disk_mb: int | None = None
    """Size of the layer; `limits.disk_mb` when None."""


@dataclass(frozen=True, slots=True)
class Data:
    """A read-only file with this content."""

    content: bytes
    target: str
    mode: int = 0o444


@dataclass(frozen=True, slots=True)
class Scratch:
    """An empty writable folder of limited size."""

    target: str
    mb: int = 16


@dataclass(frozen=True, slots=True)
class Control:
    """A folder that only we can write to, for messages and FIFOs; `Launched.controls` has our end."""

    target: str


Mount = Bind | Overlay | Data | Scratch | Control


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    argv: tuple[str, ...]
    """Looked up in the sandbox; 'python3' is the running interpreter's. When empty, only the mounts are made."""
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to PATH, HOME=/tmp, LANG, USER."""
    limits: Limits = field(default_factory=Limits)
    fds: Mapping[int, int] = field(default_factory=dict)
    """Number inside -> our descriptor. 0, 1 and 2 are /dev/null when not named. The caller closes its own."""
    cwd: str = "/"
    owner: str = ""
    """Who holds the lease, for the person who lists it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    cpu_seconds: float
    """Of all processes that have ended, and of all with a cgroup."""
    peak_memory_mb: float
    """Of the whole sandbox with a cgroup, of its largest process without; on cgroup v2 the peak is the slot's."""
    met: LimitName
    """A limit that the kernel or the clock enforced; '' if none is known."""


def isolation() -> Isolation:
    """What `launch` gives on this machine, without trying it; `Bubblewrap.probe` tries it."""
    _, hierarchy = slots.machine()
    notes = [] if hierarchy.kind != "rlimits" else [f"limits by rlimits and polling: {hierarchy.why}"]
    if os.geteuid() != 0:
        notes.append(f"sandboxes run as your own uid {os.geteuid()}; as root each has a uid of its own")
    if not seccomp.supported():
        notes.append("no system-call filter for this processor")
    level = "weak" if hierarchy.kind == "rlimits" or not seccomp.supported() else "strong"
    return Isolation(backend="bubblewrap", level=level, limits=hierarchy.kind, notes=tuple(notes))  # type: ignore[arg-type]


CONSTANT_ENV = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "agent",
    "TERM": "dumb",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def base_env() -> dict[str, str]:
    about, _ = slots.machine()
    return {"PATH": about.path, **CONSTANT_ENV}


def launch(spec: Launch) -> Launched:
    """Raises SandboxFault when this machine can't, InloopError when a mount source is missing."""
    return Launched(spec)


class Launched:
    """A running sandbox. Thread safe; `close` gives everything back and may be called at any time, twice too."""

    def __init__(self, spec: Launch) -> None:
        self.spec = spec
        self.isolation = isolation()
        self.uppers: list[int] = []
        self.controls: list[int] = []
        self.pidfd = -1
        self._status: dict[str, Any] = {}
        self._deadline_met = False
        self._closed = False
        self._lock = threading.RLock()
        self.pool = slots.pool()
        self.slot = self.pool.acquire()
        self.lease = lease.take(spec.owner, keeper=self.slot.pid, uid=self.slot.uid, groups=self.slot.groups)
        try:
            self._prepare()
            self._first = self.counters()
            if spec.argv:
                self.start(spec.argv, spec.fds)
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        mounts, contents = [], []
        try:
            for item in self.spec.mounts:
                mounts.append(_as_request(item, self.spec.limits))
                if isinstance(item, Data):
                    contents.append(_memory_file(item.content))
            limits = {
                "memory_mb": self.spec.limits.memory_mb, "disk_mb": self.spec.limits.disk_mb,
                "processes": self.spec.limits.processes, "file_mb": self.spec.limits.file_mb,
                "cpu_seconds": self.spec.limits.cpu_seconds,
            }  # fmt: skip
            request = {"op": "prepare", "lease": str(self.lease.folder), "limits": limits, "mounts": mounts}
            answer, folders = self.slot.ask(request, contents)
        finally:
            for fd in contents:
                os.close(fd)
        self.uppers, self.controls = folders[: answer["uppers"]], folders[answer["uppers"] :]
        self.notes: tuple[str, ...] = tuple(answer["notes"])

    def start(self, argv: tuple[str, ...], fds: Mapping[int, int], *, limit_inside: bool = True) -> None:
        """Run a program over the same mounts and layers; the one before must have ended.

        `limit_inside`: an ordinary user's limit of processes is set by a bash in between; else by the program."""
        with self._lock:
            self._drop_pidfd()
            env = {**base_env(), **self.spec.env}
            request: dict[str, Any] = {"op": "start", "argv": list(argv), "env": env, "cwd": self.spec.cwd}
            request |= {"fds": list(fds), "limit_inside": limit_inside}
            answer, received = self.slot.ask(request, list(fds.values()))
            self.pid: int = answer["pid"]
            self.pidfd = received[0]
            self._status = {}

    def fresh(self) -> None:
        """End everything and empty the layers; `start` goes on from there."""
        with self._lock:
            for fd in self.uppers:
                os.close(fd)
            self.uppers = []
            self.uppers = self.slot.ask({"op": "fresh"})[1]

    @property
    def upper(self) -> Path:
        """The layer of the first overlay: changed files, whiteouts and opaque folders, all untrusted."""
        return Path(f"/proc/self/fd/{self.uppers[0]}/../up")

    def open_folders(self, *paths: str) -> list[int]:
        """Descriptors of folders as the running program sees them; the caller closes them."""
        return self.slot.ask({"op": "open", "paths": list(paths)})[1]

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit code (negative: killed by that signal), or None when `timeout` seconds passed first."""
        with contextlib.suppress(ValueError, OSError):
            poll = select.poll()
            poll.register(self.pidfd, select.POLLIN)
            if not poll.poll(None if timeout is None else max(0, int(timeout * 1000))):
                return None
        with self._lock:
            if not self._closed and not self._status:
                answer, _ = self.slot.ask({"op": "stop"})
                self._status = answer
        return self.exit_code

    @property
    def exit_code(self) -> int:
        """Of the program that ended last; negative: bubblewrap was killed by that signal."""
        return int(self._status.get("code", -signal.SIGKILL))

    def kill(self, *, deadline: bool = False) -> None:
        """End every process of the sandbox; returns when they are gone. `deadline`: say so in `usage().met`."""
        with self._lock:
            self._deadline_met = self._deadline_met or deadline
            if not self._closed:
                answer, _ = self.slot.ask({"op": "stop"})
                self._status = answer

    @property
    def group(self) -> cgroup.Group:
        hierarchy = slots.machine()[1]
        group = cgroup.Group(hierarchy, "")
        group.folders = dict(zip(hierarchy.parents, map(Path, self.slot.groups), strict=True))
        return group

    def counters(self) -> cgroup.Counters:
        return self.group.counters()

    def usage(self) -> Usage:
        now, first = self._last or self.counters(), self._first
        by_group = self.isolation.limits != "rlimits"
        cpu = now.cpu_seconds - first.cpu_seconds if by_group else self._status.get("cpu_seconds", 0.0)
        peak = now.peak_mb if by_group else self._status.get("peak_mb", 0.0)
        met: LimitName = ""
        if self._deadline_met:
            met = "wall"
        elif now.oom_kills > first.oom_kills:
            met = "memory"
        elif now.forks_refused > first.forks_refused:
            met = "processes"
        elif cpu > self.spec.limits.cpu_seconds or self._status.get("code") in (
            -signal.SIGXCPU,
            128 + signal.SIGXCPU,
        ):
            met = "cpu"
        elif self._status.get("code") in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ):
            met = "file"
        return Usage(cpu_seconds=cpu, peak_memory_mb=peak, met=met)

    _last: cgroup.Counters | None = None

    @property
    def complaints(self) -> str:
        """What bubblewrap said when it could not start, or the program to an unnamed stderr; known after it ended."""
        return str(self._status.get("complaints", ""))

    def _drop_pidfd(self) -> None:
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._last = self.counters()
            try:
                answer, _ = self.slot.ask({"op": "release"})
                self._status = self._status or answer
                self.pool.give_back(self.slot)
            except SandboxFault:
                self.slot.close()
            finally:
                lease.give_back(self.lease)
                for fd in (*self.uppers, *self.controls):
                    os.close(fd)
                self.uppers, self.controls = [], []
                self._drop_pidfd()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("data")
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _as_request(item: Mount, limits: Limits) -> dict[str, Any]:
    match item:
        case Bind(source, target, mapped):
            return {"kind": "bind", "src": _existing(source), "dst": target, "mapped": mapped}
        case Overlay(lower, target, disk_mb):
            lower = _existing(lower, folder=True)
            return {"kind": "overlay", "lower": lower, "dst": target, "disk_mb": disk_mb or limits.disk_mb}
        case Data(_, target, mode):
            return {"kind": "data", "dst": target, "mode": mode}
        case Scratch(target, mb):
            return {"kind": "tmp", "dst": target, "mb": mb}
        case Control(target):
            return {"kind": "control", "dst": target}


def _existing(path: Path | str, *, folder: bool = False) -> str:
    real = Path(path).resolve()
    if not real.exists() or (folder and not real.is_dir()):
        raise InloopError(
            f"{path} is not there" if not real.exists() else f"{path} is not a folder", fix="name an existing folder"
        )
    return str(real)
