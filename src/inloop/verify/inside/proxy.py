"""Split mode, trusted side: modules whose functions run in another sandbox. Arguments and results cross by value."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import socket
import sys
import types
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from inloop.verify.inside import wire
from inloop.verify.inside.clock import REAL, Clock

STANDARD = {
    "json.decoder", "decimal", "re", "re._constants", "binascii", "struct", "csv", "_csv", "configparser", "zoneinfo",
    "fractions", "ast", "tokenize", "queue", "asyncio.exceptions", "concurrent.futures._base", "shutil", "subprocess",
    "zlib", "email.errors", "urllib.error", "xml.etree.ElementTree", "xml.parsers.expat", "pickle", "_pickle",
    "dataclasses", "enum", "graphlib", "statistics", "ipaddress", "string", "textwrap", "argparse", "getopt",
}  # fmt: skip
"""Standard modules whose exception classes are used as they are; every other class is rebuilt by name."""


class SubmissionGone(Exception):
    """The process that runs the submission ended, ran out of its budget or broke the protocol."""


class NotPlain(Exception):
    """A value that only exists inside the submission's process."""


class Remote:
    """The submission's process: started when a proxied module is first imported."""

    def __init__(self, meter: socket.socket, modules: Sequence[str], budget: float) -> None:
        self.meter = wire.Channel(meter)
        self.modules, self.budget = modules, budget
        self.channel: wire.Channel | None = None
        self.gone = False
        self.classes: dict[tuple[str, str], type[BaseException]] = {}
        self.callbacks: list[Any] = []
        self.clock = Clock(self.used)

    def install(self) -> None:
        self.clock.install()
        sys.meta_path.insert(0, Finder(self))

    def start(self) -> wire.Channel:
        if self.channel is None:
            self.meter.send(["start"])
            _, fds, _, _ = socket.recv_fds(self.meter.sock, 1, 1)
            if not fds:
                raise SubmissionGone("the submission's process did not start")
            self.channel = wire.Channel(socket.socket(fileno=fds[0]))
            self.clock.restart()
            self.mark()
        return self.channel

    def used(self) -> float:
        """CPU seconds of the submission's process so far."""
        if self.channel is None:
            return 0.0
        self.meter.send(["cpu"])
        return float(self.meter.receive()["cpu"])

    def mark(self) -> tuple[float, bool]:
        """(CPU seconds of the submission since the last mark, whether it was ended for using too much).

        A process that is gone is replaced by a fresh one when the next test asks."""
        if self.channel is None:
            return 0.0, False
        try:
            self.meter.send(["mark", self.budget])
            answer = self.meter.receive()
        except (EOFError, wire.WireError):
            return 0.0, False
        if self.gone or answer["spent"]:
            self.channel, self.gone = None, False
        return float(answer["cpu"]), bool(answer["spent"])

    def ask(self, *message: Any) -> Any:
        """The answer's value. Raises what the submission raised, SubmissionGone or NotPlain."""
        try:
            channel = self.start()
            channel.send(list(message))
            answer = channel.receive()
            while "cb" in answer:
                self._print(answer)
                channel.send(self._called_back(answer))
                answer = channel.receive()
            self._print(answer)
        except wire.WireError as error:
            raise NotPlain(str(error)) from None
        except (EOFError, OSError, TypeError) as error:
            self.gone = True
            raise SubmissionGone(f"no answer from the submission ({error})") from None
        return self._result(answer)

    def _result(self, answer: dict[str, Any]) -> Any:
        if "x" in answer:
            raise self.exception(answer["x"])
        if "odd" in answer:
            raise NotPlain(str(answer["odd"]))
        if "end" in answer:
            raise StopIteration(self.value(answer["end"]))
        return answer

    def _print(self, answer: dict[str, Any]) -> None:
        for key, stream in (("o", sys.stdout), ("e", sys.stderr)):
            if text := answer.get(key):
                stream.write(str(text))

    def _called_back(self, answer: dict[str, Any]) -> list[Any]:
        try:
            function = self.callbacks[answer["cb"]]
            named = {str(k): self.value(v) for k, v in answer["k"]}
            return ["ret", self.plain(function(*(self.value(a) for a in answer["a"]), **named))]
        except Exception as error:
            return ["exc", type(error).__name__, str(error)]

    def value(self, data: Any) -> Any:
        return wire.decode(data, self._special)

    def plain(self, value: Any) -> Any:
        return wire.encode(value, self._tagged)

    def _tagged(self, value: Any) -> list[Any] | None:
        """Functions of the tests cross as numbers, to be called back; iterators as lists are read to their end."""
        if isinstance(value, Function):
            return value.place
        name = str(getattr(value, "__name__", ""))
        if isinstance(value, type | types.BuiltinFunctionType) and getattr(builtins, name, None) is value:
            return ["type", name]
        if callable(value):
            self.callbacks.append(value)
            return ["cb", len(self.callbacks) - 1]
        return None

    def _special(self, tagged: list[Any]) -> Any:
        if tagged[0] == "fn":
            return Function(self, ["ref", int(tagged[1])], str(tagged[2]))
        if tagged[0] == "it":
            items = self._items(int(tagged[1]))
            return items if tagged[2] == "generator" else Items(items)
        raise wire.WireError("unknown tag")

    def _items(self, handle: int) -> Generator[Any, None, Any]:
        while True:
            try:
                item = self.value(self.ask("next", handle)["v"])
            except StopIteration as error:
                return error.value
            yield item

    def exception(self, spec: dict[str, Any]) -> BaseException:
        """An exception of the same class, arguments, message and plain attributes."""
        cls = self.class_of(spec["mro"])
        arguments = [self.value(a) for a in spec["args"]]
        try:
            error = cls(*arguments)
        except Exception:
            error = cls.__new__(cls)
            BaseException.__init__(error, *arguments)
        message = str(spec.get("message", ""))
        if isinstance(error, Rebuilt):
            error.message = message
        for key, value in spec["state"]:
            if isinstance(key, str) and key.isidentifier() and not key.startswith("__"):
                with contextlib.suppress(Exception):
                    setattr(error, key, self.value(value))
        return error

    def class_of(self, mro: list[list[str]]) -> type[BaseException]:
        """Builtin and standard exception classes by name; others are made once, over their first known base."""
        if not mro:
            return Exception
        module, name = str(mro[0][0]), str(mro[0][1])
        if (known := known_class(module, name)) is not None:
            return known
        key = (module, name)
        if key not in self.classes:
            base = self.class_of(mro[1:])
            bases = (base,) if issubclass(base, Rebuilt) else (Rebuilt, base)
            self.classes[key] = type(name.rpartition(".")[2], bases, {"__module__": module, "__qualname__": name})
        return self.classes[key]


class Rebuilt(Exception):
    """Base of classes that exist in the submission only; `str()` is what it was there."""

    message = ""

    def __str__(self) -> str:
        return self.message


def known_class(module: str, name: str) -> type[BaseException] | None:
    if module == "builtins":
        found = getattr(builtins, name, None)
    elif module in STANDARD:
        found = getattr(importlib.import_module(module), name, None)
    else:
        return None
    fine = isinstance(found, type) and (issubclass(found, Exception) or found is SystemExit)
    return found if fine else None


class Items(Iterator[Any]):
    """An iterator that is not a generator."""

    def __init__(self, items: Iterator[Any]) -> None:
        self.items = items

    def __next__(self) -> Any:
        return next(self.items)


class Function:
    """A function of the submission: calling it asks the other sandbox."""

    def __init__(self, remote: Remote, place: list[Any], name: str) -> None:
        self.remote, self.place, self.__name__ = remote, place, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        began = REAL()
        try:
            return self._call(args, kwargs)
        finally:
            self.remote.clock.call(REAL() - began)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        remote = self.remote
        arguments = [remote.plain(a) for a in args]
        named = [[k, remote.plain(v)] for k, v in kwargs.items()]
        kind, *where = self.place
        answer = remote.ask("ref" if kind == "ref" else "call", *where, arguments, named)
        try:
            result = remote.value(answer["v"])
            for key, new in answer.get("m", ()):
                refill(args[key] if isinstance(key, int) else kwargs[key], remote.value(new))
        except (wire.WireError, KeyError, IndexError, TypeError) as error:
            raise SubmissionGone(f"not an answer: {error}") from None
        return result


def refill(old: Any, new: Any) -> None:
    """Give a container that was an argument the content that the call left in it."""
    if type(old) is not type(new):
        raise TypeError("an argument changed its type")
    if isinstance(old, dict):
        old.clear()
        old.update(new)
    elif isinstance(old, set):
        old.clear()
        old |= new
    elif isinstance(old, bytearray):
        old[:] = new
    else:
        kept = list(zip(old, new, strict=False))
        for before, after in kept:
            if type(before) is type(after) and isinstance(before, list | dict | set):
                refill(before, after)
        both = [b if type(b) is type(a) and isinstance(b, list | dict | set) else a for b, a in kept]
        rest = list(new)[len(kept) :]
        old.clear()
        old.extend([*both, *rest])


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the proxied modules, and everything below them, from the other sandbox."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        below = any(name == m or name.startswith(f"{m}.") for m in self.remote.modules)
        above = any(m.startswith(f"{name}.") for m in self.remote.modules)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if below or above else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Proxy(spec.name, self.remote)

    def exec_module(self, module: types.ModuleType) -> None:
        assert isinstance(module, Proxy)
        module.__path__ = []
        answer = self.remote.ask("import", module.__name__)["v"]
        object.__setattr__(module, "_exports", {str(k): v for k, v in answer["exports"].items()})
        module.__all__ = answer["all"] or [n for n in answer["exports"] if not n.startswith("_")]


class Proxy(types.ModuleType):
    """A module of the submission; attributes are looked up in what its process exports."""

    __all__: list[str]

    def __init__(self, name: str, remote: Remote) -> None:
        super().__init__(name)
        self._remote = remote
        self._exports: dict[str, list[Any]] = {}

    def __getattr__(self, name: str) -> Any:
        exports = self.__dict__.get("_exports", {})
        if name.startswith("__") or name not in exports:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        kind, value = exports[name]
        remote: Remote = self.__dict__["_remote"]
        if kind == "f":
            found: Any = Function(remote, ["name", self.__name__, name], name)
        elif kind == "x":
            found = remote.class_of(value)
        elif kind == "m":
            found = importlib.import_module(str(value))
        elif kind == "v":
            found = remote.value(value)
        else:
            raise NotPlain(f"{self.__name__}.{name}: {value}")
        self.__dict__[name] = found
        return found
