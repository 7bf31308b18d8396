"""A kept bash inside the sandbox: it costs no process to run a simple command in it, and it can be lost without harm.

Simple commands run in the bash itself; anything that could change or end it (`exit`, `set`, a loop, an assignment)
runs in a fork of it. Either way only the directory and the exported variables live on: each command dumps them, the
host keeps them, and after a restart the new bash gets them.

What the agent can reach decides nothing: deadlines, limits and output caps are enforced from outside. Measured against
a bare kept shell in benchmarks/sandbox.py."""

from __future__ import annotations

import contextlib
import os
import re
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
GRACE = 1.0
"""Seconds for the shell to report a command that was killed, before the whole sandbox is restarted."""

SCRIPT = r"""
printf 'ready %s\n' $$ >&3
while read -r -u 3 __n __k __mode __load; do
  [ $__load = 0 ] || . /run/inloop/state 2>/dev/null
  if [ $__mode = d ]; then
    { . /run/inloop/cmd; } 3>&- </dev/null >/run/inloop/o$__k 2>/run/inloop/e$__k
    __c=$?
    { printf 'cd -- %q\n' "$PWD"; declare -px; printf '#%s\n' $__n; } >/run/inloop/s$__k
  else
    set -m
    ( trap '{ printf "cd -- %q\n" "$PWD"; declare -px; printf "#%s\n" "$__n"; } >/run/inloop/s$__k' EXIT
      . /run/inloop/cmd
    ) 3>&- </dev/null >/run/inloop/o$__k 2>/run/inloop/e$__k
    __c=$?
    set +m
  fi
  printf '%s %s\n' $__n $__c >&3
done
"""
"""Reads descriptor 3. `set -m` gives a fork its own process group, so that its `kill 0` hits only itself."""
ARGV = ("/bin/bash", "--norc", "--noprofile", f"{CONTROL}/shell")

PLAIN = re.compile(r"""[\w ./,:@%+^'"|&<>*?~$-]*\Z""")
"""No brackets, assignments, escapes, comments or lists: when what it started is killed, nothing of it goes on."""
CHANGES_SHELL = re.compile(
    r"\b(alias|bg|bind|break|builtin|case|command|continue|coproc|declare|disown|enable|eval|exec|exit|fc|fg|for|function"
    r"|getopts|hash|history|if|jobs|kill|let|local|logout|mapfile|popd|printf|pushd|dirs|read|readarray|readonly|return"
    r"|select|set|shift|shopt|source|suspend|time|times|trap|typeset|ulimit|umask|unalias|unset|until|wait|while)\b"
    r"|(^|[ &|])\. |<<|\|\||(?<!&)&(?!&)"
)


def is_plain(command: str) -> bool:
    """Whether the kept shell itself can run it: one pipeline, or commands with `&&`, that could change it only by `cd`.

    Not both: a pipeline has the status of its last command, so `&&` would go on after the first was killed."""
    if "|" in command and "&&" in command:
        return False
    return bool(PLAIN.match(command)) and not CHANGES_SHELL.search(command)


def prepare(control: int, *, processes: int | None = None) -> None:
    """An empty control folder, but for the script. `processes`: a limit that has to be set inside."""
    for name in os.listdir(control):
        os.unlink(name, dir_fd=control)
    limit = "" if processes is None else f"ulimit -u {processes}\n"
    _write(control, "shell", (limit + SCRIPT).encode())


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
    number: bytes
    pipe: int
    streams: dict[int, Clip]
    """Open read ends: stdout, stderr and the state, in this order when it began."""
    state: Clip
    code: int | None = None


Watch = Callable[[], LimitName]
Stop = Callable[[], None]


@dataclass(slots=True)
class Shell:
    """The host's end. `control` is the folder that the sandbox sees read only as /run/inloop."""

    control: int
    keep: int
    """Bytes kept of each output."""
    state: bytes
    """Shell text: the directory and the exported variables that the last command left."""
    home: bytes
    """Shell text for a start in the first directory, when the last one is gone."""
    sock: socket.socket
    pidfd: int
    pid: int = 0
    """The bash's process id inside."""
    _names: set[bytes] = field(default_factory=set)
    """All variables that were ever exported."""
    _loaded: bool = False
    """Whether the kept bash has `state`."""
    _count: int = 0
    _heard: bytes = b""
    _made: int = 0
    _free: list[int] = field(default_factory=list)
    _held: list[int] = field(default_factory=list)
    """Read ends that a background process still writes to: drained, or it would block."""

    def wait_ready(self, seconds: float) -> None:
        """Raises Dead when the shell does not come up."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        poll.register(self.pidfd, select.POLLIN)
        end = time.monotonic() + seconds
        while not self.pid:
            ready = dict(poll.poll(max(0, int((end - time.monotonic()) * 1000))))
            if self.sock.fileno() not in ready:
                raise Dead
            self._hear(None)

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
        except Dead:
            running.code = None
        self._drain(running)
        self._end(running)
        if running.code is None:
            return Outcome(137, stdout, stderr, limit, dead=True)
        return Outcome(running.code, stdout, stderr, limit)

    def _begin(self, command: str) -> _Running:
        self._count += 1
        pipe, load = self._pipe(), 0 if self._loaded else 1
        if load:
            unset = b"unset -v " + b" ".join(sorted(self._names)) + b"\n" if self._names else b""
            _write(self.control, "state", unset + self.home + self.state)
        _write(self.control, "cmd", command.encode("utf-8", "replace"))
        plain = is_plain(command)
        self._loaded = plain
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        ends = [os.open(f"{name}{pipe}", flags, dir_fd=self.control) for name in "oes"]
        clips = [Clip(self.keep), Clip(self.keep), Clip(2 * STATE_MAX)]
        with contextlib.suppress(OSError):  # the loop sees that it is gone
            self.sock.sendall(f"{self._count} {pipe} {'d' if plain else 'f'} {load}\n".encode())
        return _Running(str(self._count).encode(), pipe, dict(zip(ends, clips, strict=True)), clips[2])

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

    def _hear(self, running: _Running | None) -> None:
        data = self.sock.recv(4096)
        if not data:
            raise Dead
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            what, _, value = line.partition(b" ")
            if value.isdigit() and what == b"ready":
                self.pid = int(value)
            elif value.isdigit() and running and what == running.number:
                running.code = int(value)

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
        """What was written before the end is in the FIFOs by now; background processes may write on: not for ever."""
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
        self._adopt(bytes(running.state.head + running.state.tail), running.number)

    def _adopt(self, dump: bytes, number: bytes) -> None:
        """Keep the state that a command left, when it is whole. One that was killed leaves the state as it was."""
        text, _, last = dump.rpartition(b"#")
        if last != number + b"\n" or len(text) > STATE_MAX:
            self._loaded = False
        elif text != self.state:
            self.state = text
            self._names.update(re.findall(rb"^declare -\w+ (\w+)", text, re.MULTILINE))

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
