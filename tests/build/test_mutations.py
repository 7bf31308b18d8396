"""Every mutation is a small edit that parses, changes the tree, and leaves the rest of the file byte for byte."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from inloop.build.mutations import KINDS, candidates, misspell, mutate, several
from inloop.build.pysource import Module
from inloop.errors import TaskError

SOURCE = '''\
"""Module."""


class Shelf:
    def fit(self, items, width=10, *, strict=False):
        """Docstring with 1 < 2 and +."""
        total = 0   # spacing   kept
        out = []
        for index, item in enumerate(items, 1):
            if item.size <= width and not item.hidden:
                total += item.size * 2
            elif strict or item is None:
                raise ValueError("ünï", index)
            out.append((item, index))
        rest = items[1:] if total == width else []
        return out, max(rest, out)
'''


@pytest.fixture(scope="module")
def module() -> Module:
    return Module("shelf.py", SOURCE.encode())


def test_every_kind_is_found_and_every_mutant_is_a_small_edit(module: Module) -> None:
    (function,) = module.functions()
    assert function.unit == "shelf.py::Shelf.fit"
    found = candidates(module, function)
    assert {m.kind for m in found} == set(KINDS) - {"several"}
    before = ast.dump(ast.parse(SOURCE))
    for mutation in found:
        text = mutate(module, mutation).decode()
        start, end = mutation.span
        assert ast.dump(ast.parse(text)) != before
        assert text.encode()[:start] == module.data[:start]
        assert text.encode().endswith(module.data[end:])
        assert "Docstring with 1 < 2 and +." in text


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("boundary", "item.size <= width", "item.size < width"),
        ("comparison", "total == width", "total != width"),
        ("operator", "total += item.size", "total -= item.size"),
        ("condition", "not item.hidden", "item.hidden"),
        ("condition", "strict or item", "strict and item"),
        ("comparison", "item is None", "item is not None"),
        ("constant", "total = 0   #", "total = 1   #"),
        ("boundary", "items[1:]", "items[2:]"),
        ("boundary", "enumerate(items, 1)", "enumerate(items, 2)"),
        ("arguments", "max(rest, out)", "max(out, rest)"),
        ("return", "return out, max(rest, out)", "return max(rest, out), out"),
        ("removed", "            out.append((item, index))\n", ""),
    ],
)
def test_named_mutations(module: Module, kind: str, old: str, new: str) -> None:
    found = candidates(module, module.functions()[0])
    assert SOURCE.replace(old, new).encode() in [mutate(module, m) for m in found if m.kind == kind]


def test_several_never_overlap(module: Module) -> None:
    singles = candidates(module, module.functions()[0])
    for seed in range(50):
        both = several(singles, random.Random(seed))
        assert both is not None and len(both.edits) >= 2
        mutate(module, both)


@pytest.mark.parametrize("name", ["item", "size", "rest", "aaaa", "width", "x_y_z", "naïve", "NotImplementedError"])
def test_misspellings_are_other_identifiers(name: str) -> None:
    assert misspell(name) != name and misspell(name).isidentifier() and misspell(name) == misspell(name)


def test_odd_sources_are_refused_or_read() -> None:
    for data in (b"def f(:\n", b"\0", "# coding: latin-1\nx = '\xe9'\n".encode("latin-1"), b"x = '\xff'\n"):
        with pytest.raises(SyntaxError):
            Module("m.py", data)
    crlf = Module("m.py", b"\xef\xbb\xbfdef f(a):\r\n    return a + 1\r\n")
    (mutant,) = [m for m in candidates(crlf, crlf.functions()[0]) if m.kind == "operator"]
    assert mutate(crlf, mutant) == b"\xef\xbb\xbfdef f(a):\r\n    return a - 1\r\n"


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    from inloop.build.mutate import check_kinds

    with pytest.raises(TaskError, match="'operators' is no kind"):
        check_kinds(["operators"])
