"""Plain values as JSON and back, exactly: type for type, and nothing that could run code when it is read."""

from __future__ import annotations

import collections
import importlib
import json
import math
import socket
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 100
MAX_BYTES = 32 << 20
BIG_INT = 10**300
"""Larger integers travel in hex: Python limits the decimal digits that it reads."""
BY_NAME = {
    ("datetime", "date"), ("datetime", "time"), ("datetime", "datetime"), ("datetime", "timedelta"),
    ("datetime", "timezone"), ("decimal", "Decimal"), ("fractions", "Fraction"), ("uuid", "UUID"),
    ("pathlib", "PosixPath"), ("pathlib", "PurePosixPath"), ("pathlib._local", "PosixPath"),
    ("pathlib._local", "PurePosixPath"),
}  # fmt: skip
"""Value classes of the standard library that are rebuilt from plain arguments."""


class WireError(Exception):
    """A value that can't cross, or a message that is not of this protocol."""


Special = Callable[[Any], "list[Any] | None"]


def encode(value: Any, special: Special | None = None, depth: int = 0) -> Any:
    """A JSON value for `value`; `special` may give a tagged list for functions and iterators. Raises WireError."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -BIG_INT < value < BIG_INT else ["i", hex(value)]
    if kind is float:
        return value if math.isfinite(value) else ["f", repr(value)]
    if depth > MAX_DEPTH:
        raise WireError("nested too deeply to cross")

    def inner(item: Any) -> Any:
        return encode(item, special, depth + 1)

    if (encoder := _ENCODERS.get(kind)) is not None:
        return encoder(value, inner)
    if (kind.__module__, kind.__qualname__) in BY_NAME:
        return _named(value, kind, inner)
    if special is not None and (tagged := special(value)) is not None:
        return tagged
    raise WireError(f"a value of type {kind.__module__}.{kind.__qualname__} does not cross (only plain values do)")


SIMPLE = {type(None), bool, str}


def _items(value: Any, inner: Callable[[Any], Any]) -> list[Any]:
    """The items of a container, encoded; a long list of numbers or texts costs no call an item."""
    items = list(value)
    kinds = set(map(type, items))
    if kinds <= SIMPLE or (kinds == {int} and min(items) > -BIG_INT and max(items) < BIG_INT):
        return items
    return [inner(i) for i in items]


def _values(items: list[Any], inner: Callable[[Any], Any]) -> list[Any]:
    return [inner(i) for i in items] if list in set(map(type, items)) or dict in set(map(type, items)) else items


def _pairs(value: Any, inner: Callable[[Any], Any]) -> list[Any]:
    return [[inner(k), inner(v)] for k, v in value.items()]


_ENCODERS: dict[type, Callable[[Any, Callable[[Any], Any]], list[Any]]] = {
    list: lambda v, inner: ["l", *_items(v, inner)],
    tuple: lambda v, inner: ["t", *_items(v, inner)],
    set: lambda v, inner: ["s", *_items(v, inner)],
    frozenset: lambda v, inner: ["z", *_items(v, inner)],
    dict: lambda v, inner: ["d", *_pairs(v, inner)],
    collections.OrderedDict: lambda v, inner: ["O", *_pairs(v, inner)],
    collections.Counter: lambda v, inner: ["C", *_pairs(v, inner)],
    collections.defaultdict: lambda v, inner: ["D", *_pairs(v, inner)],
    collections.deque: lambda v, inner: ["q", v.maxlen, *map(inner, v)],
    bytes: lambda v, inner: ["b", v.hex()],
    bytearray: lambda v, inner: ["a", v.hex()],
    complex: lambda v, inner: ["c", repr(v.real), repr(v.imag)],
    range: lambda v, inner: ["r", v.start, v.stop, v.step],
    type(...): lambda v, inner: ["e"],
    type(NotImplemented): lambda v, inner: ["n"],
}


def _named(value: Any, kind: type, inner: Callable[[Any], Any]) -> list[Any]:
    name = kind.__qualname__
    if name in ("date", "time", "datetime", "timedelta", "timezone"):
        arguments: tuple[Any, ...] = tuple(getattr(value, f) for f in _FIELDS[name]) if name in _FIELDS else ()
        if name == "timezone":
            arguments = (value.utcoffset(None), value.tzname(None))
        return ["N", "datetime", name, *map(inner, arguments)]
    if name == "Fraction":
        return ["N", "fractions", name, value.numerator, value.denominator]
    return ["N", kind.__module__.split(".")[0], name, str(value)]


_CLOCK = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
_FIELDS = {
    "date": ("year", "month", "day"),
    "time": _CLOCK,
    "datetime": ("year", "month", "day", *_CLOCK),
    "timedelta": ("days", "seconds", "microseconds"),
}


def decode(value: Any, special: Callable[[list[Any]], Any] | None = None) -> Any:
    """The Python value of a JSON value. Raises WireError on anything that `encode` does not write."""
    if type(value) is not list:
        if value is None or type(value) in (bool, int, float, str):
            return value
        raise WireError("not a plain value")
    if not value or type(value[0]) is not str:
        raise WireError("a value without its type")

    def inner(item: Any) -> Any:
        return decode(item, special)

    decoder = _DECODERS.get(value[0])
    try:
        if decoder is not None:
            return decoder(value[1:], inner)
        if special is not None:
            return special(value)
    except WireError:
        raise
    except Exception as error:
        raise WireError(f"a malformed value: {type(error).__name__}") from None
    raise WireError(f"unknown tag {value[0]!r}")


def _dict(items: list[Any], inner: Callable[[Any], Any]) -> dict[Any, Any]:
    return {inner(k): inner(v) for k, v in items}


def _build(items: list[Any], inner: Callable[[Any], Any]) -> Any:
    module, name, *arguments = items
    if (module, name) not in BY_NAME:
        raise WireError("unknown class")
    values = list(map(inner, arguments))
    extra = {"fold": values.pop()} if name in ("time", "datetime") else {}
    return getattr(importlib.import_module(module), name)(*values, **extra)


_DECODERS: dict[str, Callable[[list[Any], Callable[[Any], Any]], Any]] = {
    "l": lambda v, inner: list(_values(v, inner)),
    "t": lambda v, inner: tuple(_values(v, inner)),
    "s": lambda v, inner: set(_values(v, inner)),
    "z": lambda v, inner: frozenset(_values(v, inner)),
    "d": _dict,
    "O": lambda v, inner: collections.OrderedDict(_dict(v, inner)),
    "C": lambda v, inner: collections.Counter(_dict(v, inner)),
    "D": lambda v, inner: collections.defaultdict(None, _dict(v, inner)),
    "q": lambda v, inner: collections.deque(map(inner, v[1:]), v[0]),
    "b": lambda v, inner: bytes.fromhex(v[0]),
    "a": lambda v, inner: bytearray.fromhex(v[0]),
    "c": lambda v, inner: complex(float(v[0]), float(v[1])),
    "r": lambda v, inner: range(*v),
    "e": lambda v, inner: ...,
    "n": lambda v, inner: NotImplemented,
    "i": lambda v, inner: int(v[0], 16),
    "f": lambda v, inner: float(v[0]),
    "N": _build,
}


_DUMP = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_LOAD = json.JSONDecoder().decode


class Channel:
    """Whole JSON messages over a stream socket. Raises EOFError when the other side is gone, WireError on garbage."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.unread = b""

    def send(self, value: Any) -> None:
        data = _DUMP(value).encode("ascii")
        if len(data) > MAX_BYTES:
            raise WireError(f"{len(data)} bytes are too many to cross")
        try:
            self.sock.sendall(len(data).to_bytes(4, "big") + data)
        except OSError as error:
            raise EOFError(str(error)) from None

    def receive(self) -> Any:
        have = self.unread
        while len(have) < 4:
            have += self._more()
        size = int.from_bytes(have[:4], "big") + 4
        if size > MAX_BYTES:
            raise WireError("a message that is too large")
        if len(have) < size:
            parts, length = [have], len(have)
            while length < size:
                parts.append(self._more())
                length += len(parts[-1])
            have = b"".join(parts)
        self.unread = have[size:]
        try:
            return _LOAD(have[4:size].decode("ascii"))
        except (ValueError, RecursionError):
            raise WireError("a message that is not JSON") from None

    def _more(self) -> bytes:
        try:
            part = self.sock.recv(1 << 16)
        except OSError as error:
            raise EOFError(str(error)) from None
        if not part:
            raise EOFError("closed")
        return part
