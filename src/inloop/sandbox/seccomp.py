"""The system-call filter: a deny list as classic BPF, for x86_64 and aarch64.

Namespaces already hide files, processes and the network; the filter takes away kernel surface that no build or test
run needs (io_uring, bpf, keyctl, ptrace, mounts, new namespaces, odd socket families)."""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
AT_NUMBER, AT_ARCH, AT_ARG0, AT_ARG1 = 0, 4, 16, 24

CLONE_NEW = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
CLONE_NEWTIME = 0x80
"""A new namespace for unshare only: in clone these bits hold the exit signal."""
SOCKET_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6; all that the private network namespace can use."""
TIOCSTI, TIOCLINUX = 0x5412, 0x541C

# name: (x86_64, aarch64); None where the architecture has no such call
DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "mount": (165, 40), "umount2": (166, 39), "swapon": (167, 224), "swapoff": (168, 225),
    "reboot": (169, 142), "sethostname": (170, 161), "setdomainname": (171, 162), "init_module": (175, 105),
    "delete_module": (176, 106), "quotactl": (179, 60), "pivot_root": (155, 41), "chroot": (161, 51),
    "acct": (163, 89), "settimeofday": (164, 170), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "kexec_load": (246, 104), "perf_event_open": (298, 241), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "clock_adjtime": (305, 266), "setns": (308, 268),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "finit_module": (313, 273),
    "kexec_file_load": (320, 294), "bpf": (321, 280), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443), "personality": (135, 92), "syslog": (103, 116), "iopl": (172, None),
    "ioperm": (173, None), "adjtimex": (159, 171), "clock_settime": (227, 112), "vhangup": (153, 58),
    "uselib": (134, None), "mbind": (237, 235), "set_mempolicy": (238, 237), "get_mempolicy": (239, 236),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    audit_arch: int
    column: int
    clone: int
    unshare: int
    socket: int
    ioctl: int
    clone3: int = 435


MACHINES = {
    "x86_64": Machine(0xC000003E, 0, clone=56, unshare=272, socket=41, ioctl=16),
    "aarch64": Machine(0xC00000B7, 1, clone=220, unshare=97, socket=198, ioctl=29),
}

Instruction = tuple[int, int, int, int]


def supported(machine: str = "") -> bool:
    return (machine or platform.machine()) in MACHINES


def program(machine: str = "") -> bytes:
    """The filter for `machine` (this one when empty) as an array of struct sock_filter."""
    m = MACHINES[machine or platform.machine()]
    code: list[Instruction] = [
        (LOAD, 0, 0, AT_ARCH),
        (JUMP_EQUAL, 1, 0, m.audit_arch),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, AT_NUMBER),
    ]
    if m.column == 0:
        code += _deny_from(0x40000000, errno.ENOSYS)  # the x32 numbers
    for numbers in DENIED.values():
        number = numbers[m.column]
        if number is not None:
            code += _deny(number, errno.EPERM)
    code += _deny(m.clone3, errno.ENOSYS)  # not EPERM: glibc then falls back to clone, whose flags can be read
    code += _deny_flags(m.clone, CLONE_NEW) + _deny_flags(m.unshare, CLONE_NEW | CLONE_NEWTIME)
    code += _allow_only(m.socket, AT_ARG0, SOCKET_FAMILIES, errno.EAFNOSUPPORT)
    code += _deny_values(m.ioctl, AT_ARG1, (TIOCSTI, TIOCLINUX))
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", op, yes, no, value & 0xFFFFFFFF) for op, yes, no, value in code)


def _deny(number: int, error: int) -> list[Instruction]:
    return [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | error)]


def _deny_from(number: int, error: int) -> list[Instruction]:
    return [(JUMP_AT_LEAST, 0, 1, number), (RETURN, 0, 0, ERRNO | error)]


def _deny_flags(number: int, flags: int) -> list[Instruction]:
    body: list[Instruction] = [
        (LOAD, 0, 0, AT_ARG0),
        (JUMP_SET, 0, 1, flags),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    return [(JUMP_EQUAL, 0, len(body), number), *body]


def _deny_values(number: int, argument: int, values: tuple[int, ...]) -> list[Instruction]:
    checks: list[Instruction] = []
    for value in values:
        checks += [(JUMP_EQUAL, 0, 1, value), (RETURN, 0, 0, ERRNO | errno.EPERM)]
    body: list[Instruction] = [(LOAD, 0, 0, argument), *checks, (RETURN, 0, 0, ALLOW)]
    return [(JUMP_EQUAL, 0, len(body), number), *body]


def _allow_only(number: int, argument: int, values: tuple[int, ...], error: int) -> list[Instruction]:
    checks: list[Instruction] = []
    for value in values:
        checks += [(JUMP_EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW)]
    body: list[Instruction] = [(LOAD, 0, 0, argument), *checks, (RETURN, 0, 0, ERRNO | error)]
    return [(JUMP_EQUAL, 0, len(body), number), *body]
