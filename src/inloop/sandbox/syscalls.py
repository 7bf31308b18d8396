"""The Linux calls that Python's standard library lacks: mounts, namespaces, confined opens, per-thread file ids."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_DUMPABLE = 4

# the same numbers on x86_64 and aarch64
SYS_OPEN_TREE = 428
SYS_MOVE_MOUNT = 429
SYS_OPENAT2 = 437
SYS_MOUNT_SETATTR = 442

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 4
MOUNT_ATTR_RDONLY = 1
MOUNT_ATTR_IDMAP = 0x00100000
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_BENEATH = 0x08

libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    _check(libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    arguments = (os.fsencode(source) if source else None, os.fsencode(target), kind.encode() if kind else None)
    _check(libc.mount(*arguments, ctypes.c_ulong(flags), data.encode()), f"mount {target}")


def bind(source: str, target: str) -> None:
    mount(source, target, None, MS_BIND | MS_REC)


def unmount(target: str) -> None:
    _check(libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def prctl(option: int, value: int) -> None:
    _check(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def bind_mapped(source: str, target: str, userns: int) -> None:
    """Bind `source` read only, its owners mapped through the user namespace `userns`: nothing is copied or chowned.

    Raises OSError where the kernel or the file system has no id-mapped mounts."""
    tree = _check(
        libc.syscall(SYS_OPEN_TREE, AT_FDCWD, os.fsencode(source), OPEN_TREE_CLONE | os.O_CLOEXEC),
        f"open_tree {source}",
    )
    try:
        attributes = struct.pack("QQQQ", MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY, 0, 0, userns)
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        _check(libc.syscall(SYS_MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, buffer, len(attributes)), "mount_setattr")
        _check(
            libc.syscall(SYS_MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(target), MOVE_MOUNT_F_EMPTY_PATH),
            "move_mount",
        )
    finally:
        os.close(tree)


def mapping_namespace(inside: int, outside: int) -> int:
    """A descriptor of a user namespace that maps one uid and gid; needs root."""
    ready, told = os.pipe()
    done, finish = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            unshare(CLONE_NEWUSER)
            os.write(told, b"x")
            os.close(finish)
            os.read(done, 1)
        finally:
            os._exit(0)
    os.close(told)
    try:
        if not os.read(ready, 1):
            raise OSError("no user namespace for the id map")
        for name in ("uid_map", "gid_map"):
            write_once(f"/proc/{child}/{name}", f"{inside} {outside} 1")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for fd in (ready, done, finish):
            os.close(fd)
        os.waitpid(child, 0)


def loopback_up() -> None:
    """Bring up `lo` of this network namespace (ioctl SIOCGIFFLAGS, SIOCSIFFLAGS)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        name, flags = struct.unpack("16sh", fcntl.ioctl(sock, 0x8913, struct.pack("16sh14x", b"lo", 0))[:18])
        fcntl.ioctl(sock, 0x8914, struct.pack("16sh14x", name, flags | 1))


def write_once(path: str, text: str) -> None:
    """One write(2), as the control files of /proc and cgroups want it."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def open_beneath(folder: int, path: str, flags: int, mode: int = 0) -> int:
    """openat2 that can't leave `folder`, by `..`, absolute links or /proc links: those raise OSError EXDEV."""
    how = struct.pack("QQQ", flags | os.O_CLOEXEC, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    buffer = ctypes.create_string_buffer(how, len(how))
    return _check(libc.syscall(SYS_OPENAT2, folder, os.fsencode(path), buffer, len(how)), path)


@contextlib.contextmanager
def file_identity(uid: int, gid: int) -> Iterator[None]:
    """This thread reads and writes files as `uid` (and without root's file capabilities); other threads do not.

    Nothing changes where the process runs as `uid` already."""
    if os.geteuid() == uid:
        yield
        return
    libc.setfsgid(ctypes.c_uint(gid))
    libc.setfsuid(ctypes.c_uint(uid))
    try:
        if libc.setfsuid(ctypes.c_uint(0xFFFFFFFF)) != uid:
            raise PermissionError(f"can't act as uid {uid} on files")
        yield
    finally:
        libc.setfsuid(ctypes.c_uint(os.geteuid()))
        libc.setfsgid(ctypes.c_uint(os.getegid()))
