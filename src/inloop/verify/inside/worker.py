"""Split mode, untrusted side: runs the submission's functions for a trusted test process; only plain values leave.

The parent never imports the submission. It forks one child for a half of the tests, measures its CPU time and ends
it when a test has used up its budget; the child answers calls over a socket that the parent made."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import importlib
import io
import os
import select
import signal
import socket
import sys
import time
import types
from typing import Any

from inloop.verify.inside import wire
from inloop.verify.inside.cpu import cpu_of
from inloop.verify.inside.lay import Laid

PR_SET_DUMPABLE = 4
MAX_HANDLES = 10_000
WATCH = 0.1
"""Seconds between two looks at what the children use."""
MUTABLE = (list, dict, set, bytearray, collections.deque, collections.OrderedDict, collections.Counter)
"""Arguments that a call may change in place; their new content goes back."""


def main() -> None:
    """argv: descriptors of the host's socket and of one meter a half. The host's one message lays the submission."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    host = wire.Channel(socket.socket(fileno=int(sys.argv[1])))
    METERS.extend(Meter(socket.socket(fileno=int(fd))) for fd in sys.argv[2:])
    job = host.receive()
    host.send(["ready", Laid(job).dropped])
    host.sock.close()
    sys.path.extend(job["path"])
    sys.argv[:] = ["worker"]
    os.chdir(job["cwd"])
    serve_meters(METERS)


def serve_meters(meters: list[Meter]) -> None:
    looked = 0.0
    while meters:
        ready, _, _ = select.select(meters, [], [], WATCH if any(m.pid for m in meters) else None)
        if time.monotonic() - looked >= WATCH:  # looking costs more than answering: not once a message
            for meter in meters:
                meter.watch()
            looked = time.monotonic()
        for meter in ready:
            if not meter.serve():
                meter.end()
                meters.remove(meter)


class Meter:
    """One half's child and the socket over which the trusted test process asks about it."""

    def __init__(self, sock: socket.socket) -> None:
        self.channel = wire.Channel(sock)
        self.pid = 0
        self.budget = 0.0
        self.base = 0.0
        self.spent = False

    def fileno(self) -> int:
        return self.channel.sock.fileno()

    def serve(self) -> bool:
        """Answer one message; False when the test process is gone."""
        try:
            message = self.channel.receive()
            if message[0] == "start":
                self.start()
            elif message[0] == "cpu":
                self.channel.send({"cpu": cpu_of(self.pid, self.known()) if self.pid else self.base})
            else:
                self.channel.send({"cpu": self.mark(float(message[1])), "spent": self.spent})
        except (EOFError, OSError, wire.WireError):
            return False
        return True

    def start(self) -> None:
        """Fork a fresh process of the submission and hand its socket to the test process."""
        self.end()
        self.base, self.spent, self.budget = 0.0, False, 0.0
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if not self.pid:
            ours.close()
            for meter in METERS:
                meter.channel.sock.close()
            serve(theirs)
        theirs.close()
        with ours:
            socket.send_fds(self.channel.sock, [b"f"], [ours.fileno()])

    def mark(self, budget: float) -> float:
        """CPU seconds since the last mark; the next stretch may use `budget` seconds."""
        now = cpu_of(self.pid, self.known()) if self.pid else self.base
        used, self.base = now - self.base, now
        if self.budget and used > self.budget:
            self.spent = True
            self.end()
        self.budget = budget
        return max(0.0, used)

    def watch(self) -> None:
        if self.pid and self.budget and cpu_of(self.pid, self.known()) - self.base > self.budget:
            self.spent = True
            self.end()

    def known(self) -> set[int]:
        return {1, os.getpid(), *(m.pid for m in METERS)}

    def end(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        self.pid = 0


METERS: list[Meter] = []


def serve(sock: socket.socket) -> None:
    """The child: answer calls until the other side closes. All of it may be tampered with; it only gives values."""
    os.setsid()
    server = Server(wire.Channel(sock))
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    with contextlib.suppress(EOFError):
        while True:
            server.channel.send(server.answer(server.channel.receive()))
    os._exit(0)


class Server:
    def __init__(self, channel: wire.Channel) -> None:
        self.channel = channel
        self.handles: dict[int, Any] = {}

    def answer(self, message: list[Any]) -> dict[str, Any]:
        operation, *rest = message
        try:
            reply: dict[str, Any] = getattr(self, f"do_{operation}")(*rest)
        except StopIteration as error:
            reply = {"end": self.plain(error.value)} if operation == "next" else {"x": exception_spec(error)}
        except wire.WireError as error:
            reply = {"odd": str(error)}
        except BaseException as error:
            reply = {"x": exception_spec(error)}
        return reply | printed if (printed := self.printed()) else reply

    def do_import(self, name: str) -> dict[str, Any]:
        module = importlib.import_module(name)
        public = [n for n in dir(module) if not n.startswith("__") or n in ("__version__", "__doc__")]
        exports = {n: self.export(getattr(module, n)) for n in public}
        return {"v": {"exports": exports, "all": [str(n) for n in getattr(module, "__all__", [])] or None}}

    def export(self, value: Any) -> list[Any]:
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["x", class_spec(value)]
        if isinstance(value, types.ModuleType):
            return ["m", value.__name__]
        if callable(value):
            return ["f", None]
        try:
            return ["v", wire.encode(value)]
        except wire.WireError as error:
            return ["?", str(error)]

    def do_call(self, module: str, name: str, arguments: list[Any], named: list[Any]) -> dict[str, Any]:
        found = sys.modules.get(module) or importlib.import_module(module)
        return self.called(getattr(found, name), arguments, named)

    def do_ref(self, handle: int, arguments: list[Any], named: list[Any]) -> dict[str, Any]:
        return self.called(self.handles[handle], arguments, named)

    def called(self, function: Any, arguments: list[Any], named: list[Any]) -> dict[str, Any]:
        args = [wire.decode(a, self.callback) for a in arguments]
        kwargs = {k: wire.decode(v, self.callback) for k, v in named}
        result = self.plain(function(*args, **kwargs))
        changed = [[n, self.plain(a)] for n, a in enumerate(args) if mutable(a)]
        changed += [[k, self.plain(v)] for k, v in kwargs.items() if mutable(v)]
        if not changed:
            return {"v": result}
        before = dict(enumerate(arguments)) | dict(named)
        return {"v": result, "m": [[k, v] for k, v in changed if v != before[k]]}

    def do_next(self, handle: int) -> dict[str, Any]:
        return {"v": self.plain(next(self.handles[handle]))}

    def plain(self, value: Any) -> Any:
        return wire.encode(value, self.special)

    def special(self, value: Any) -> list[Any] | None:
        """Iterators and functions stay here; the other side gets a number to use them by."""
        if hasattr(type(value), "__next__"):
            return ["it", self.keep(value), "generator" if isinstance(value, types.GeneratorType) else "iterator"]
        if type(value) in (type({}.keys()), type({}.values()), type({}.items())):
            return wire.encode(list(value), self.special)  # type: ignore[no-any-return]
        if isinstance(value, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
            return ["fn", self.keep(value), value.__name__]
        return None

    def keep(self, value: Any) -> int:
        if len(self.handles) >= MAX_HANDLES:
            raise wire.WireError(f"more than {MAX_HANDLES} functions and iterators given out")
        self.handles[len(self.handles)] = value
        return len(self.handles) - 1

    def callback(self, tagged: list[Any]) -> Any:
        """A function of the tests that was given as an argument: calling it asks the other side."""
        if tagged[0] == "type":
            return getattr(importlib.import_module("builtins"), tagged[1])
        if tagged[0] == "ref":
            return self.handles[tagged[1]]
        if tagged[0] == "name":
            return getattr(importlib.import_module(tagged[1]), tagged[2])
        if tagged[0] != "cb":
            raise wire.WireError("unknown tag")

        def call(*args: Any, **kwargs: Any) -> Any:
            named = [[k, self.plain(v)] for k, v in kwargs.items()]
            self.channel.send({"cb": tagged[1], "a": [self.plain(a) for a in args], "k": named} | self.printed())
            while (message := self.channel.receive())[0] not in ("ret", "exc"):
                self.channel.send(self.answer(message))
            if message[0] == "ret":
                return wire.decode(message[1], self.callback)
            raise getattr(importlib.import_module("builtins"), message[1], Exception)(message[2])

        return call

    def printed(self) -> dict[str, Any]:
        out = {}
        for key, stream in (("o", sys.stdout), ("e", sys.stderr)):
            if isinstance(stream, io.StringIO) and stream.tell():
                out[key] = stream.getvalue()
                stream.seek(0)
                stream.truncate()
        return out


def mutable(value: Any) -> bool:
    return type(value) in MUTABLE


def class_spec(cls: type) -> list[list[str]]:
    return [[c.__module__, c.__qualname__] for c in cls.__mro__ if c not in (object, BaseException)]


def exception_spec(error: BaseException) -> dict[str, Any]:
    spec: dict[str, Any] = {"mro": class_spec(type(error)), "args": [], "state": []}
    with contextlib.suppress(BaseException):
        spec["message"] = str(error)[:100_000]
    for value in error.args:
        with contextlib.suppress(BaseException):
            spec["args"].append(wire.encode(value))
    spec["whole"] = len(spec["args"]) == len(error.args)
    for key, value in list(getattr(error, "__dict__", {}).items())[:100]:
        with contextlib.suppress(BaseException):
            spec["state"].append([key, wire.encode(value)])
    return spec
