"""Plain values cross exactly; anything else is refused on the way out and on the way in."""

from __future__ import annotations

import collections
import json
import math
import socket
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inloop.verify.inside.wire import Channel, WireError, decode, encode

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
LEAVES |= st.dates() | st.datetimes() | st.timedeltas() | st.decimals(allow_nan=False) | st.fractions()
HASHABLE = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    LEAVES,
    lambda v: (
        st.lists(v) | st.tuples(v, v) | st.dictionaries(HASHABLE, v) | st.sets(HASHABLE) | st.frozensets(HASHABLE)
    ),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, complex):
        return repr(a) == repr(b)
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(map(same, a.values(), b.values()))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_round_trip_keeps_value_and_type(value: Any) -> None:
    assert same(decode(json.loads(json.dumps(encode(value)))), value)


class Sub(int):
    pass


Point = collections.namedtuple("Point", "x")
OTHERS = [object(), Sub(1), type("S", (str,), {})("x"), type("L", (list,), {})(), len, [object()], Point(1)]


@pytest.mark.parametrize("value", OTHERS)
def test_nothing_else_leaves(value: Any) -> None:
    with pytest.raises(WireError, match="does not cross"):
        encode(value)


def test_depth_is_bounded() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(WireError, match="deep"):
        encode(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda v: st.lists(v, max_size=5) | st.dictionaries(st.text(), v, max_size=3),
)


@given(
    JSON | st.lists(JSON).map(lambda v: ["N", *v]) | st.tuples(st.sampled_from("ltszdODCqbacrifenN"), JSON).map(list)
)
@settings(max_examples=120, deadline=None)
def test_garbage_is_refused_or_plain(value: Any) -> None:
    """Whatever a hostile process sends, reading it gives a plain value or a WireError."""
    try:
        found = decode(value)
    except WireError:
        return
    encode(found)


def pair() -> tuple[Channel, Channel]:
    a, b = socket.socketpair()
    return Channel(a), Channel(b)


def test_messages_keep_their_borders() -> None:
    a, b = pair()
    with a.sock, b.sock:
        values = [[1], {"k": "é" * 70_000}, None]
        sender = threading.Thread(target=lambda: [a.send(v) for v in values])
        sender.start()
        assert [b.receive() for _ in range(3)] == values
        sender.join()


@pytest.mark.parametrize("raw", [b"\xff\xff\xff\xff", b"\0\0\0\3abc", b"\0\0\0\2\xff\xff", b"\0\0\x20\0" + b"[" * 8192])
def test_bad_frames(raw: bytes) -> None:
    a, b = pair()
    with a.sock, b.sock:
        a.sock.sendall(raw)
        with pytest.raises(WireError):
            b.receive()


def test_a_closed_peer_is_the_end() -> None:
    a, b = pair()
    with b.sock:
        a.sock.sendall(b"\0\0\0\7[1")
        a.sock.close()
        with pytest.raises(EOFError):
            b.receive()
