"""Attacks, as plain functions: the tests run them as the user they run as, and once more as an ordinary user.

A `Probe` prints OPEN when what it tries works and SHUT when it does not. It is run in the sandbox, where it must print
SHUT, and as a negative control without isolation, where it must print OPEN; where the control prints SHUT too (this
machine forbids it to everybody), the check proves nothing and says so."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inloop.sandbox.base import CommandResult, Sandbox, SandboxSpec
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.sandbox.process import UnisolatedProcess
from inloop.tasks.task import Limits

SMALL = Limits(memory_mb=160, processes=24, file_mb=8, disk_mb=16, command_seconds=20, output_bytes=4096)
HEAD = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def say(open_): print("OPEN" if open_ else "SHUT")
def works(f):
    try: return f()
    except Exception: return False
"""


@dataclass(frozen=True)
class Probe:
    name: str
    code: str
    """Python, after HEAD; {secret}, {port}, {abstract}, {path}, {pid}, {marker} are filled in."""
    as_root: bool = False
    """The control works only as root."""


def _syscall(number: dict[str, int], arguments: str, *, refused: str = "libc.syscall({n}, {a}) == -1") -> str:
    n = number.get(os.uname().machine, number["x86_64"])
    return f"say(not ({refused.format(n=n, a=arguments)}))"


PROBES = (
    Probe("a file of the host", "say(works(lambda: open({secret!r}).read().startswith('secret')))"),
    Probe("environments of other processes", """
def seen():
    for p in os.listdir('/proc'):
        if p.isdigit() and works(lambda: {marker!r}.encode() in open(f'/proc/{{p}}/environ', 'rb').read()): return True
say(seen())"""),
    Probe("signals to other processes", """
def peek():
    os.kill({pid}, 0)
    return {marker!r}.encode() in open('/proc/{pid}/environ', 'rb').read()
say(works(peek))"""),
    Probe("loopback of the host", "say(works(lambda: socket.create_connection(('127.0.0.1', {port}), 2) or True))"),
    Probe("abstract sockets", """
s = socket.socket(socket.AF_UNIX)
say(works(lambda: s.connect(chr(0) + {abstract!r}) is None))"""),
    Probe("sockets in the file system", """
s = socket.socket(socket.AF_UNIX)
say(works(lambda: s.connect({path!r}) is None))"""),
    Probe("network interfaces", "say(open('/proc/net/dev').read().count(':') > 1)"),
    Probe("nested user namespaces", "say(libc.unshare(0x10000000) == 0)"),
    Probe("keys of the kernel", _syscall(
        {"x86_64": 248, "aarch64": 217}, "b'user', b'inloop', b'x', 1, -2")),
    Probe("ptrace", _syscall({"x86_64": 101, "aarch64": 117}, "0, 0, 0, 0")),
    Probe("io_uring", _syscall({"x86_64": 425}, "1, ctypes.create_string_buffer(120)")),
    Probe("settings of the kernel", """
def write():
    path = '/proc/sys/kernel/randomize_va_space'
    old = open(path).read()
    open(path, 'w').write(old)
    return True
say(works(write))""", as_root=True),
    Probe("/etc/shadow", "say(works(lambda: bool(open('/etc/shadow').read())))", as_root=True),
    Probe("capabilities", """
line = next(l for l in open('/proc/self/status') if l.startswith('CapEff'))
say(int(line.split()[1], 16) != 0)""", as_root=True),
    Probe("mounting", """
say(libc.unshare(0x20000) == 0 and libc.mount(b'x', b'/tmp', b'tmpfs', 0, 0) == 0)""", as_root=True),
    Probe("new privileges by setuid programs", """
say(any(l.split() == ['NoNewPrivs:', '0'] for l in open('/proc/self/status')))"""),
    Probe("the sources of this project", "say(os.path.exists({here!r}))"),
)  # fmt: skip


@contextlib.contextmanager
def targets() -> Iterator[dict[str, object]]:
    """What the probes reach for on the host: a secret file, a process with a secret, services."""
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="inloop-test-"))
        stack.callback(shutil.rmtree, folder)
        secret = folder / "secret"
        secret.write_text("secret\n")
        marker = f"marker-{os.urandom(8).hex()}"
        victim = subprocess.Popen(["/bin/sleep", "300"], env={"SECRET": marker})
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        abstract, path = f"inloop-{os.urandom(8).hex()}", str(folder / "socket")
        port = _serve(stack, socket.AF_INET, ("127.0.0.1", 0))
        _serve(stack, socket.AF_UNIX, "\0" + abstract)
        _serve(stack, socket.AF_UNIX, path)
        yield {
            "secret": str(secret), "marker": marker, "pid": victim.pid, "port": port, "abstract": abstract,
            "path": path, "here": str(Path(__file__).resolve()),
        }  # fmt: skip


def _serve(stack: contextlib.ExitStack, family: int, address: object) -> int:
    server = socket.socket(family)
    stack.callback(server.close)
    server.bind(address)
    server.listen(16)
    return server.getsockname()[1] if family == socket.AF_INET else 0


def ask(probe: Probe, box: Sandbox, aim: dict[str, object]) -> str:
    """'OPEN' or 'SHUT', or what went wrong."""
    code = HEAD + probe.code.format(**aim)
    box.write("probe.py", code.encode())
    result = box.run("python3 -I probe.py", timeout=15)
    return result.stdout.strip() or f"{result}"


def workspace() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="inloop-test-ws-"))
    (folder / "a.txt").write_text("pristine\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.txt").write_text("b\n")
    return folder


@contextlib.contextmanager
def opened(limits: Limits = SMALL, **keywords: object) -> Iterator[Sandbox]:
    folder = workspace()
    box = Bubblewrap().open(SandboxSpec(workspace=folder, limits=limits, owner="test", **keywords))
    try:
        yield box
    finally:
        box.close()
        shutil.rmtree(folder)


@contextlib.contextmanager
def unisolated() -> Iterator[Sandbox]:
    folder = workspace()
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    box = UnisolatedProcess().open(SandboxSpec(workspace=folder, env={"PATH": path}))
    try:
        yield box
    finally:
        box.close()
        shutil.rmtree(folder)


# what uses things up: each is bounded, and the sandbox must go on afterwards


@dataclass(frozen=True)
class Attack:
    name: str
    command: str
    limits: tuple[str, ...]
    """The limits that may be reported."""
    timeout: float = 20


PY = "python3 -I -c "
ATTACKS = (
    Attack("fork bomb, bounded", PY + """'
import os, time
for i in range(300):
    try:
        if os.fork() == 0: time.sleep(30); os._exit(0)
    except OSError as e:
        raise SystemExit(f"fork: retry: {os.strerror(e.errno)}")
'""", ("processes",)),
    Attack("fork bomb of the shell", "bomb() { bomb | bomb & }; bomb; sleep 30", ("wall", "processes"), timeout=1.0),
    Attack("memory, one process", PY + "'x = bytearray(600 << 20); print(len(x))'", ("memory",)),
    Attack("memory, several processes", PY + """'
import os, time
kids = []
for i in range(8):
    pid = os.fork()
    if pid == 0:
        x = bytearray(60 << 20)
        for j in range(0, len(x), 4096): x[j] = 1
        time.sleep(3); os._exit(0)
    kids.append(pid)
print(sorted(os.waitpid(p, 0)[1] for p in kids))
'""", ("memory",)),
    Attack("one file", "head -c 200000000 /dev/zero > big", ("file",)),
    Attack("the workspace's disk", "for i in $(seq 40); do head -c 4000000 /dev/zero > f$i || exit 1; done", ("disk",)),
    Attack("/dev/shm", "for i in $(seq 40); do head -c 4000000 /dev/zero > /dev/shm/f$i || exit 1; done", ("disk",)),
    Attack("/tmp", "for i in $(seq 40); do head -c 4000000 /dev/zero > /tmp/f$i || exit 1; done", ("disk",)),
    Attack("inodes", PY + "'for i in range(100000): open(f\"n{i}\", \"w\").close()'", ("disk",)),
    Attack("endless output", "yes", ("output",)),
    Attack("endless errors", "yes >&2", ("output",)),
    Attack("a daemon that ignores SIGTERM", PY + """'
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(300)
    os._exit(0)
time.sleep(300)
'""", ("wall",), timeout=0.5),
    Attack("a loop that never ends", "while :; do :; done", ("wall",), timeout=0.3),
    Attack("a pipe that nobody writes", "mkfifo p; echo x > p", ("wall",), timeout=0.3),
)  # fmt: skip


def endure(attack: Attack, box: Sandbox) -> CommandResult:
    """Run it, then see that the sandbox goes on and holds none of its processes."""
    result = box.run(attack.command, timeout=attack.timeout)
    assert result.limit in attack.limits, f"{attack.name}: limit {result.limit!r} of {result}"
    if attack.limits == ("wall",):
        assert result.exit_code == 124
    after = box.run("rm -rf /tmp/f* /dev/shm/f* f* n* big; cat a.txt; ls /proc | grep -c '^[0-9]'", timeout=30)
    assert after.stdout.startswith("pristine\n"), f"{attack.name}: the sandbox is broken: {after}"
    return result


def left_of(box: Sandbox) -> list[str]:
    """Processes, control groups and folders that a closed sandbox has left; the slot itself stays for the next."""
    launched = box._launched
    slot = _command(launched.slot.pid)  # and its spare fork, which looks the same
    left = [f"process {p}" for p in launched.group.pids() if _command(p) != slot]
    if launched.lease.folder.exists():
        left.append(f"folder {launched.lease.folder}")
    return left


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"gone"


def in_threads(count: int, work: Callable[[int], None]) -> list[BaseException]:
    faults: list[BaseException] = []

    def one(number: int) -> None:
        try:
            work(number)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults
