"""Messages between a process and its keepers: one JSON document a packet, file descriptors beside it."""

from __future__ import annotations

import array
import json
import os
import socket
from collections.abc import Sequence
from typing import Any

MAX_PACKET = 160_000
MAX_FDS = 64


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(sock: socket.socket, value: Any, fds: Sequence[int] = ()) -> None:
    """Raises ValueError when the message or the number of descriptors is too large, OSError when the peer is gone."""
    raw = json.dumps(value).encode()
    if len(raw) > MAX_PACKET or len(fds) > MAX_FDS:
        raise ValueError(f"{len(raw)} bytes and {len(fds)} descriptors are too much for one message")
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([raw], ancillary)


def receive(sock: socket.socket) -> tuple[Any, list[int]]:
    """(value, descriptors); (None, []) when the peer is gone."""
    raw, fds, _, _ = socket.recv_fds(sock, MAX_PACKET + 1024, MAX_FDS)
    for fd in fds:
        os.set_inheritable(fd, False)
    return (json.loads(raw) if raw else None), list(fds)
