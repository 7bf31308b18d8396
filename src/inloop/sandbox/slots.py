"""The owner's side of the keeper: one per process, and a pool of slots, reused because a new one costs 20 ms."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from inloop.errors import SandboxFault
from inloop.sandbox import cgroup, lease, profile, wire

MAX_IDLE = 8
DEFAULT_UIDS = "61000-61999"
FIX_PROBE = "`inloop sandbox probe` says what this machine allows"
FIX_NAMESPACES = (
    "allow user namespaces: on Ubuntu 24.04+ `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`; in docker "
    "`--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined` "
    "(as root also `--cap-add SYS_ADMIN`); elsewhere `sysctl kernel.unprivileged_userns_clone=1 "
    "user.max_user_namespaces=10000`; or choose the backend 'docker'"
)


@cache
def machine() -> tuple[profile.Profile, cgroup.Hierarchy]:
    return profile.find(), cgroup.find()


def uid_range() -> tuple[int, int]:
    """Host uids for sandboxes, used only by root; INLOOP_UIDS='61000-61999'."""
    text = os.environ.get("INLOOP_UIDS", DEFAULT_UIDS)
    first, _, last = text.partition("-")
    if not (first.isdigit() and last.isdigit() and 1000 < int(first) <= int(last)):
        raise SandboxFault(f"INLOOP_UIDS={text!r} is no range of unprivileged uids", fix=f"write it as {DEFAULT_UIDS}")
    return int(first), int(last)


class Channel:
    """A keeper or a slot: requests and answers, one at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.lock = threading.Lock()

    def ask(self, request: dict[str, Any], fds: Sequence[int] = ()) -> tuple[dict[str, Any], list[int]]:
        """Raises SandboxFault when the other side is gone or says that it failed."""
        with self.lock:
            try:
                wire.send(self.sock, request, fds)
                answer, received = wire.receive(self.sock)
            except OSError as error:
                raise SandboxFault(f"the sandbox keeper is gone: {error.strerror}") from error
        if answer is None:
            raise SandboxFault("the sandbox keeper is gone")
        if "error" in answer:
            raise SandboxFault(f"the sandbox can't be set up: {answer['error']}")
        return answer, received

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.close()


class Slot(Channel):
    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        answer, _ = wire.receive(sock)
        if answer is None or "error" in answer:
            why = answer["error"] if answer else "it ended"
            raise SandboxFault(f"the sandbox keeper could not make a slot: {why}", fix=FIX_PROBE)
        self.uid: int = answer["uid"]
        self.pid: int = answer["pid"]
        self.groups: tuple[str, ...] = tuple(answer["groups"])


class Pool:
    """The keeper of this process and its idle slots."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.idle: list[Slot] = []
        self.lock = threading.Lock()
        self.keeper, self.process = _start_keeper()

    def acquire(self) -> Slot:
        with self.lock:
            if self.idle:
                return self.idle.pop()
        _, fds = self.keeper.ask({"op": "slot"})
        return Slot(socket.socket(fileno=fds[0]))

    def give_back(self, slot: Slot) -> None:
        with self.lock:
            if len(self.idle) < MAX_IDLE:
                self.idle.append(slot)
                return
        slot.close()

    def close(self) -> None:
        with self.lock:
            for slot in self.idle:
                slot.close()
            self.idle.clear()
        self.keeper.close()
        self.process.wait()


def _start_keeper() -> tuple[Channel, subprocess.Popen[bytes]]:
    about, hierarchy = machine()
    folder = lease.run_folder()
    ours, theirs = wire.pair()
    source = str(Path(__file__).parents[2])
    code = (
        f"import sys; sys.path.insert(0, {source!r}); from inloop.sandbox.keeper import main; main({theirs.fileno()})"
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
        start_new_session=True, env={"LANG": "C.UTF-8"}, cwd="/",
    )  # fmt: skip
    theirs.close()
    channel = Channel(ours)
    try:
        channel.ask(
            {
                "stage": str(folder / "stage"), "uids": str(folder / "uids"), "uid_range": uid_range(),
                "owner": lease.process_key(os.getpid()), "profile": about.as_json(),
                "cgroup": {"kind": hierarchy.kind, "parents": hierarchy.parents},
            }
        )  # fmt: skip
    except SandboxFault as fault:
        channel.close()
        process.wait()
        raise SandboxFault(
            f"this machine does not let us make namespaces: {fault.message}", fix=FIX_NAMESPACES
        ) from fault
    return channel, process


_pool: Pool | None = None
_pool_lock = threading.Lock()


def pool() -> Pool:
    """The pool of this process; a forked child gets one of its own. What dead owners left is removed first."""
    global _pool
    with _pool_lock:
        if _pool is None or _pool.pid != os.getpid() or _pool.process.poll() is not None:
            lease.clean()
            _pool = Pool()
        return _pool


def _forget_pool() -> None:
    """After a fork: the parent's keeper is not ours, and must not be kept alive by our copy of its socket."""
    global _pool, _pool_lock
    _pool_lock = threading.Lock()
    if _pool is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            for channel in (_pool.keeper, *_pool.idle):
                channel.close()
            _pool.process.returncode = 0
            _pool = None


def _end_pool() -> None:
    if _pool is not None and _pool.pid == os.getpid():
        _pool.close()


os.register_at_fork(after_in_child=_forget_pool)
atexit.register(_end_pool)
