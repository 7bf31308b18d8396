"""The ways in which a function of the library can be broken so that its own cases notice."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from inloop.build.mutations import Mutation, candidates, mutate
from inloop.build.pysource import Edit, Function, Module
from inloop.build.starter.library import Entry
from inloop.build.starter.trial import Outcome, attempt_all

KINDS = (
    "misspelling", "operator", "comparison", "boundary", "constant", "condition", "return", "arguments", "method",
    "variable", "removed",
)  # fmt: skip
METHODS = (
    "strip lstrip rstrip", "upper lower", "keys values", "items values", "find rfind", "index rindex",
    "startswith endswith", "min max", "any all", "ljust rjust", "partition rpartition", "append extend",
    "union intersection", "isdigit isalpha", "isalnum isalpha", "isupper islower", "capitalize upper", "floor ceil",
    "sum max", "sum len", "sorted list", "removeprefix removesuffix", "add discard", "title upper", "abs int",
    "popleft pop", "zip list", "int float", "bisect_left bisect_right", "set list", "islower isupper", "join strip",
)  # fmt: skip
"""Functions and methods that are taken for each other."""


@dataclass(frozen=True)
class Break:
    """One way to break one entry, in the entry's own names."""

    kind: str
    line: int
    """1-based line of the broken source that has to be mended; of a removed statement the line before it."""
    source: str
    misspelt: tuple[str, str] | None
    """(right name, what became of it)"""
    failing: tuple[int, ...]
    """Numbers of the cases that notice."""
    raises: bool
    """Every case that notices does so by an exception that is raised on the line itself."""


@functools.cache
def breaks(entry: Entry) -> tuple[Break, ...]:
    """All that can be noticed, that stop on every case, and that one edit of one line mends."""
    module = Module(f"{entry.name}.py", entry.source.encode())
    function = next(f for f in module.functions() if f.name == entry.name)
    right = attempt_all(entry.source, entry.name, entry.cases)
    out = []
    for mutation in _mutations(module, function):
        source = mutate(module, mutation).decode()
        wrong = attempt_all(source, entry.name, entry.cases)
        if any(o.error == "Stuck" for o in wrong):
            continue
        failing = tuple(i for i, (w, r) in enumerate(zip(wrong, right, strict=True)) if not w.agrees(r.value))
        line = _line(entry.source, source)
        if len(failing) >= 2 and line and not _told(entry.source, source, [right[i].value for i in failing]):
            pointed = all(wrong[i].error and wrong[i].line == line for i in failing)
            out.append(Break(mutation.kind, line, source, _misspelt(module, mutation), failing, pointed))
    return tuple(out)


def plausible_lines(entry: Entry) -> int:
    """How many lines of the function could hold a bug of logic that its cases notice."""
    return len({b.line for b in breaks(entry) if b.kind != "misspelling"})


def expected(entry: Entry) -> tuple[Outcome, ...]:
    """What the whole function gives, one outcome a case."""
    return tuple(attempt_all(entry.source, entry.name, entry.cases))


def _mutations(module: Module, function: Function) -> Iterator[Mutation]:
    strings = [module.span(n) for n in ast.walk(function.node) if isinstance(n, ast.JoinedStr)]
    for mutation in (*candidates(module, function), *_methods(module, function)):
        start, end = mutation.span
        if mutation.kind in KINDS and not any(s < end and start < e for s, e in strings):
            yield mutation


def _methods(module: Module, function: Function) -> Iterator[Mutation]:
    for node in ast.walk(function.node):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        for other in _alike(name):
            end = module.span(called)[1]
            yield Mutation("method", (Edit(end - len(name), end, other),))


def _alike(name: str) -> list[str]:
    groups = [g.split() for g in METHODS]
    return list(dict.fromkeys(other for g in groups if name in g for other in g if other != name))


def _misspelt(module: Module, mutation: Mutation) -> tuple[str, str] | None:
    if mutation.kind != "misspelling":
        return None
    edit = mutation.edits[0]
    return module.data[edit.start : edit.end].decode(), edit.text


def _told(right: str, wrong: str, values: Sequence[Any]) -> bool:
    """Whether 'it should return ...' would be the very line that has to be written."""
    mended = {line.strip() for line in right.splitlines()} - {line.strip() for line in wrong.splitlines()}
    return any(f"return {value!r}" in mended for value in values)


def _line(right: str, wrong: str) -> int:
    """The line to mend, or 0 where no edit of a single line, found by its text alone, would do."""
    good, bad = right.splitlines(), wrong.splitlines()
    first = next((i for i, (g, b) in enumerate(zip(good, bad, strict=False)) if g != b), len(bad))
    if len(good) == len(bad) + 1 and good[:first] + good[first + 1 :] == bad:
        first -= 1
    elif len(good) != len(bad) or good[first + 1 :] != bad[first + 1 :]:
        return 0
    return first + 1 if wrong.count(bad[first]) == 1 else 0
