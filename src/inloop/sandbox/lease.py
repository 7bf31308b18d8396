"""Leases: a folder per open sandbox that says who holds it, so that what a dead owner left can be removed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from inloop.errors import SandboxFault
from inloop.sandbox import cgroup


def run_folder() -> Path:
    """Where this user's leases are; not persistent across reboots, as sandboxes aren't either."""
    uid = os.geteuid()
    chosen = os.environ.get("INLOOP_RUN_DIR")
    if chosen:
        folder = Path(chosen)
    elif uid == 0:
        folder = Path("/run/inloop")
    else:
        session = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent")
        folder = session / "inloop" if session.is_dir() and os.access(session, os.W_OK) else Path(f"/tmp/inloop-{uid}")
    try:
        for path in (folder, folder / "leases", folder / "stage", folder / "uids"):
            path.mkdir(mode=0o711, parents=True, exist_ok=True)
    except OSError as error:
        fix = "set INLOOP_RUN_DIR to a folder that you can write to"
        raise SandboxFault(f"the leases can't be kept in {folder}: {error.strerror}", fix=fix) from error
    if folder.is_symlink() or folder.stat().st_uid != uid:
        raise SandboxFault(
            f"{folder} belongs to somebody else", fix="remove it, or set INLOOP_RUN_DIR to a folder of yours"
        )
    shut = [str(p) for p in (folder, *folder.parents) if uid == 0 and not p.stat().st_mode & 0o001]
    if shut:
        fix = f"choose a place that every user can pass through, or chmod a+x {shut[-1]}"
        raise SandboxFault(f"{folder} can't be reached by the sandboxes' own uids", fix=fix)
    return folder


def process_key(pid: int) -> str:
    """'pid-start': a process that is not confused with a later one of the same number; '' when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else f"{pid}-{fields[19]}"


@cache
def _own_key(pid: int) -> str:
    return process_key(pid)


def is_alive(key: str) -> bool:
    pid, _, _ = key.partition("-")
    return bool(key) and process_key(int(pid)) == key


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    id: str
    folder: Path
    owner: str
    """Words for a person: a run folder, a task id."""
    process: str
    """`process_key` of the owner."""
    keeper: str = ""
    """`process_key` of the slot that serves it."""
    uid: int = -1
    groups: tuple[str, ...] = ()
    container: str = ""
    """A docker container's name."""
    opened: float = field(default_factory=time.time)
    """Unix time."""

    def beat(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.folder)

    @property
    def heartbeat(self) -> float:
        try:
            return self.folder.stat().st_mtime
        except FileNotFoundError:
            return self.opened

    @property
    def alive(self) -> bool:
        return is_alive(self.process)

    def as_json(self) -> dict[str, object]:
        return asdict(self) | {"folder": str(self.folder), "heartbeat": self.heartbeat, "alive": self.alive}


def take(owner: str, *, keeper: int = 0, uid: int = -1, groups: tuple[str, ...] = (), container: str = "") -> Lease:
    folders = run_folder() / "leases"
    identity = secrets.token_hex(6)
    lease = Lease(
        id=identity, folder=folders / identity, owner=owner or f"pid {os.getpid()}", process=process_key(os.getpid()),
        keeper=process_key(keeper) if keeper else "", uid=uid, groups=groups, container=container,
    )  # fmt: skip
    # written under a name that is no lease yet, so that nobody reads half of it
    building = folders / f".{identity}"
    building.mkdir(mode=0o711)
    (building / "owner.json").write_text(json.dumps(asdict(lease) | {"folder": str(lease.folder)}))
    building.rename(lease.folder)
    return lease


def give_back(lease: Lease) -> None:
    shutil.rmtree(lease.folder, ignore_errors=True)


def leases() -> list[Lease]:
    """All leases of this user, live and stale, oldest first."""
    out = []
    for path in (run_folder() / "leases").glob("[0-9a-f]*"):
        try:
            value = json.loads((path / "owner.json").read_text())
            out.append(Lease(**value | {"folder": path, "groups": tuple(value["groups"])}))
        except (OSError, ValueError, TypeError, KeyError):
            continue  # being removed by its owner or another janitor
    return sorted(out, key=lambda lease: lease.opened)


@dataclass(slots=True)
class Cleaned:
    """What the janitor removed, and what it could not."""

    leases: list[str] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def anything(self) -> bool:
        return bool(self.leases or self.processes or self.groups)


def clean() -> Cleaned:
    """Remove what dead owners left: processes, control groups, folders. Mounts end with their keeper's namespace."""
    done = Cleaned()
    for lease in leases():
        if not lease.alive:
            _end_processes(lease, done)
            _remove_groups([Path(g) for g in lease.groups], done)
            give_back(lease)
            done.leases.append(lease.id)
    _remove_groups(_ownerless_groups(), done)
    for path in (run_folder() / "leases").glob(".*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > 60:
                shutil.rmtree(path, ignore_errors=True)
    return done


def _end_processes(lease: Lease, done: Cleaned) -> None:
    """The slot first: bubblewrap dies with it, and the kernel ends the rest of its pid namespace."""
    if lease.container and shutil.which("docker"):
        removed = subprocess.run(["docker", "rm", "--force", "--volumes", lease.container], capture_output=True)
        if removed.returncode:
            done.left.append(f"container {lease.container}")
    targets = [int(lease.keeper.partition("-")[0])] if is_alive(lease.keeper) else []
    for folder in lease.groups:
        with contextlib.suppress(OSError):
            targets += [int(p) for p in (Path(folder) / "cgroup.procs").read_text().split()]
    for pid in dict.fromkeys(targets):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            done.processes.append(pid)


def _ownerless_groups() -> list[Path]:
    """Groups are named after their owner's process key, so they can be told without a lease."""
    out = []
    for parent in cgroup.find().parents.values():
        for path in Path(parent).glob(f"{cgroup.PREFIX}[0-9]*-[0-9]*-[0-9]*"):
            pid, start, _ = path.name.removeprefix(cgroup.PREFIX).split("-")
            if not is_alive(f"{pid}-{start}"):
                out.append(path)
    return out


def _remove_groups(paths: list[Path], done: Cleaned) -> None:
    for path in paths:
        if not path.exists():
            continue
        for _ in range(200):
            try:
                path.rmdir()
                done.groups.append(str(path))
                break
            except FileNotFoundError:
                break
            except OSError:
                for pid in (path / "cgroup.procs").read_text().split() if path.exists() else []:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                time.sleep(0.01)
        else:
            done.left.append(str(path))
