"""A fork of a slot that waits to become bubblewrap, so that a start does not wait for the fork."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import socket
from pathlib import Path

from inloop.sandbox import wire

SAFE_FD = 400
"""Descriptors are moved up here before they are put in place, so that none is overwritten."""
INFO_FD, FILTER_FD, SETTINGS_FD = 490, 491, 492
"""What bubblewrap reads and writes itself."""


class Spare:
    """A fork that waits to become bubblewrap: limits are set and root is dropped before there is anything to do."""

    def __init__(self, uid: int, as_root: bool, limits: dict[int, int]) -> None:
        self.limits = limits
        theirs, self.sock = wire.pair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.sock.close()
                _become(theirs, uid if as_root else -1, limits)
            except BaseException as error:
                os.write(2, f"bwrap: {error}\n".encode())
            finally:
                os._exit(126)
        theirs.close()

    def go(self, command: list[str], targets: list[int], fds: list[int], filter_path: str) -> None:
        """`fds`: bubblewrap's arguments, its information pipe, the default stderr, then one for each target."""
        wire.send(self.sock, {"command": command, "targets": targets, "filter": filter_path}, fds)
        self.sock.close()

    def dismiss(self) -> None:
        self.sock.close()
        os.waitpid(self.pid, 0)


def _become(sock: socket.socket, uid: int, limits: dict[int, int]) -> None:
    """In the fork: limits, identity, descriptors, exec."""
    for name, value in limits.items():
        _, hard = resource.getrlimit(name)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if uid >= 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    order, fds = wire.receive(sock)
    if order is None:
        os._exit(0)
    settings, told, complaints, *given = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, SAFE_FD) for fd in fds]
    null = os.open(os.devnull, os.O_RDWR)
    for target, source in {0: null, 1: null, 2: complaints, **dict(zip(order["targets"], given, strict=True))}.items():
        os.dup2(source, target)
    os.dup2(told, INFO_FD)
    if Path(order["filter"]).exists():
        # opened anew for each start: the offset of a shared descriptor would be shared too
        os.dup2(os.open(order["filter"], os.O_RDONLY), FILTER_FD)
    os.dup2(settings, SETTINGS_FD)
    os.execve(order["command"][0], order["command"], {})


def ended(pid: int, seconds: float) -> bool:
    """Whether a child ended in time; it is not reaped."""
    pidfd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(int(seconds * 1000)))
    finally:
        os.close(pidfd)
