"""A kept bash inside the sandbox: each command runs in a fork of it, so `exit`, `exec` or an open quote can't break it.

What the agent can reach decides nothing: deadlines, limits and output caps are enforced from outside, and directory
and exported variables live on the host between commands. Measured against a bare kept shell in benchmarks/sandbox.py."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from inloop.sandbox.base import LimitName
from inloop.sandbox.output import STOP_FACTOR, Clip

CONTROL = "/run/inloop"
STATE_MAX = 512 << 10
TICK = 0.2
"""Seconds between looks at what no kernel limit enforces."""
GRACE = 2.0
"""Seconds for the shell to report a command that was killed, before the whole sandbox is restarted."""

SUPERVISOR = r"""
set -m
printf 'ready %s\n' $$ >&3
while read -r -u 3 __n __k; do
  ( trap '{ printf "cd -- %q\n" "$PWD"; declare -px; printf "#%s\n" "$__n"; } >/run/inloop/s$__k 2>/dev/null' EXIT
    . /run/inloop/state 2>/dev/null
    . /run/inloop/cmd
  ) 3>&- </dev/null >/run/inloop/o$__k 2>/run/inloop/e$__k
  printf '%s %s\n' "$__n" "$?" >&3
done
"""
"""The reader of descriptor 3. `set -m` gives each command a process group, so that its `kill 0` hits only itself."""


ARGV = ("/bin/bash", "--norc", "--noprofile", f"{CONTROL}/shell")


def prepare(control: int) -> None:
    """An empty control folder, but for the script."""
    for name in os.listdir(control):  # noqa: PTH208 (a descriptor)
        os.unlink(name, dir_fd=control)
    _write(control, "shell", SUPERVISOR.encode())


class Dead(Exception):
    """The shell is gone; what it left is the caller's to restart."""


@dataclass(slots=True)
class Outcome:
    code: int
    stdout: Clip
    stderr: Clip
    limit: LimitName = ""
    dead: bool = False
    """The shell did not survive the command."""


@dataclass(slots=True)
class _Running:
    number: str
    pipe: int
    streams: dict[int, Clip]
    """Open read ends: stdout, stderr and the state, in this order when it began."""
    state: Clip
    buffer: bytes = b""
    code: int | None = None


Watch = Callable[[], LimitName]
Stop = Callable[[], None]


@dataclass(slots=True)
class Shell:
    """The host's end. `control` is the folder that the sandbox sees read only as /run/inloop."""

    control: int
    keep: int
    """Bytes kept of each output."""
    prefix: bytes
    """Shell text that runs before each command: a clean start."""
    state: bytes
    """Shell text that follows it: the directory and the exported variables that the last command left."""
    sock: socket.socket
    pidfd: int
    pid: int = 0
    """The shell's process id inside, known after `wait_ready`."""
    _made: int = 0
    _free: list[int] = field(default_factory=list)
    _held: list[int] = field(default_factory=list)
    """Read ends that a background process still writes to: drained, or it would block."""

    def wait_ready(self, seconds: float) -> None:
        """Raises Dead when the shell does not come up."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        poll.register(self.pidfd, select.POLLIN)
        end, line = time.monotonic() + seconds, b""
        while not line.endswith(b"\n"):
            ready = dict(poll.poll(max(0, int((end - time.monotonic()) * 1000))))
            data = self.sock.recv(64) if self.sock.fileno() in ready else b""
            if not data:
                raise Dead
            line += data
        self.pid = int(line.split()[1])

    def run(self, command: str, deadline: float, watch: Watch, stop: Stop) -> Outcome:
        """`deadline` on time.monotonic(). `watch` names a limit that was met; `stop` kills what the command started."""
        running = self._begin(command)
        stdout, stderr = list(running.streams.values())[:2]
        limit: LimitName = ""
        try:
            limit = self._follow(running, deadline, watch)
            if limit:
                stop()
                self._follow(running, time.monotonic() + GRACE, lambda: "", stopping=True)
            self._drain(running)
        except Dead:
            self._drain(running)
            self._end(running)
            return Outcome(137, stdout, stderr, limit, dead=True)
        self._end(running)
        if running.code is None:
            return Outcome(137, stdout, stderr, limit, dead=True)
        return Outcome(running.code, stdout, stderr, limit)

    def _begin(self, command: str) -> _Running:
        number, pipe = secrets.token_hex(8), self._pipe()
        _write(self.control, "state", self.prefix + self.state)
        _write(self.control, "cmd", command.encode("utf-8", "replace"))
        ends = [
            os.open(f"{name}{pipe}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.control) for name in "oes"
        ]
        clips = [Clip(self.keep), Clip(self.keep), Clip(2 * STATE_MAX)]
        with contextlib.suppress(OSError):  # the loop sees that it is gone
            self.sock.sendall(f"{number} {pipe}\n".encode())
        return _Running(number, pipe, dict(zip(ends, clips, strict=True)), clips[2])

    def _pipe(self) -> int:
        """The number of a set of FIFOs that nobody holds."""
        if self._free:
            return self._free.pop()
        self._made += 1
        for name in "oes":
            os.mkfifo(f"{name}{self._made}", 0o600, dir_fd=self.control)
            os.chmod(f"{name}{self._made}", 0o622, dir_fd=self.control)
        return self._made

    def _follow(self, running: _Running, deadline: float, watch: Watch, *, stopping: bool = False) -> LimitName:
        """Read until the shell reports the end; the limit that was met first, if one was. Raises Dead."""
        poll = select.poll()
        for fd in (self.sock.fileno(), self.pidfd, *running.streams, *self._held):
            poll.register(fd, select.POLLIN)
        look = time.monotonic() + TICK
        while running.code is None:
            now = time.monotonic()
            if now >= deadline:
                return "wall"
            for fd, _ in poll.poll(max(1, int((min(deadline, look) - now) * 1000) + 1)):
                if fd == self.pidfd:
                    raise Dead
                if fd == self.sock.fileno():
                    self._hear(running)
                elif not self._read(fd, running):
                    poll.unregister(fd)
            if not stopping and self._endless(running):
                return "output"
            if time.monotonic() >= look:
                if limit := watch():
                    return limit
                look = time.monotonic() + TICK
        return ""

    def _hear(self, running: _Running) -> None:
        data = self.sock.recv(4096)
        if not data:
            raise Dead
        running.buffer += data
        for line in running.buffer.split(b"\n")[:-1]:
            number, _, code = line.decode("ascii", "replace").partition(" ")
            if number == running.number and code.isdigit():
                running.code = int(code)
        running.buffer = running.buffer.rpartition(b"\n")[2]

    def _read(self, fd: int, running: _Running) -> bool:
        """False at the end of the stream."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        if fd in running.streams:
            running.streams[fd].add(data)
        elif not data:
            self._held.remove(fd)
            os.close(fd)
        return bool(data)

    def _endless(self, running: _Running) -> bool:
        return any(c.total > max(STOP_FACTOR * self.keep, 1 << 20) for c in running.streams.values())

    def _drain(self, running: _Running) -> None:
        """What was written before the end is in the FIFOs by now; background processes may write on, so not for ever."""
        for fd, clip in running.streams.items():
            for _ in range(64):
                try:
                    data = os.read(fd, 1 << 16)
                except BlockingIOError:
                    break
                if not data:
                    break
                clip.add(data)

    def _end(self, running: _Running) -> None:
        busy = False
        for fd in running.streams:
            if _has_writer(fd):
                busy = True
                self._held.append(fd)
            else:
                os.close(fd)
        if not busy:
            self._free.append(running.pipe)
        dump = bytes(running.state.head + running.state.tail)
        text, _, last = dump.rpartition(b"#")
        if last == running.number.encode() + b"\n" and len(text) < STATE_MAX:
            self.state = text

    def close(self) -> None:
        for fd in self._held:
            os.close(fd)
        self._held.clear()
        self.sock.close()


def _write(folder: int, name: str, data: bytes) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644, dir_fd=folder)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def _has_writer(fd: int) -> bool:
    """Reading a FIFO that nobody holds gives the end at once; what is still written to it is dropped."""
    try:
        return bool(os.read(fd, 1 << 16))
    except BlockingIOError:
        return True
