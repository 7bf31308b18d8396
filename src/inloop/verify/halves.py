"""Hidden test files as two halves: in each, a random part of the tests is replaced by twins, the other half the rest.

The halves look alike: same files, names and order. A submission that is in the same process as a test can't tell which
of the expectations are wrong unless it knows the right answers."""

from __future__ import annotations

import ast
import random
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import indent

from inloop.verify.mutate import Function, mutate
from inloop.verify.parsing import parse

Key = tuple[str, str]
"""(file relative to tests/, 'test_name' or 'TestClass::test_name')."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a test file; `twin` stands in for `text` where the half says so."""

    text: str
    name: str = ""
    """The test that it is; '' for everything else."""
    twin: str | None = None


@dataclass(frozen=True, slots=True)
class Half:
    """What one process runs, and what only the host knows about it."""

    files: dict[str, bytes]
    """Test files that differ from the originals, relative to tests/."""
    twins: frozenset[Key] = field(default=frozenset())


def key_of(test_id: str) -> Key:
    """'unit/test_x.py::TestC::test_a[1]' -> ('unit/test_x.py', 'TestC::test_a')."""
    file, _, rest = test_id.partition("::")
    return file, rest.partition("[")[0]


@lru_cache(maxsize=512)
def pieces(source: str, seed: int) -> tuple[Piece, ...]:
    """A test file in pieces, each test with its twin by `seed`. Raises SyntaxError."""
    tree = parse(source)
    tables = {
        n.targets[0].id: n.value
        for n in tree.body
        if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)
    }
    rng = random.Random(seed)
    out: list[Piece] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _holds_tests(node):
            out += _of_class(node, tables, rng)
        elif _is_test(node):
            out.append(_of_test(node, "", 0, tables, rng))
        else:
            out.append(Piece(ast.unparse(node)))
    return tuple(out)


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _holds_tests(node: ast.ClassDef) -> bool:
    return any(_is_test(n) for n in node.body)


def _of_class(node: ast.ClassDef, tables: dict[str, ast.expr], rng: random.Random) -> list[Piece]:
    head = ast.ClassDef(**{**dict(ast.iter_fields(node)), "body": [ast.Pass()]})
    out = [Piece(ast.unparse(ast.fix_missing_locations(head)))]
    for member in node.body:
        if _is_test(member):
            out.append(_of_test(member, node.name, 1, tables, rng))
        else:
            out.append(Piece(indent(ast.unparse(member), "    ")))
    return out


def _of_test(node: ast.AST, owner: str, depth: int, tables: dict[str, ast.expr], rng: random.Random) -> Piece:
    assert isinstance(node, Function)
    _drop_docstring(node)
    twin = mutate(node, tables, rng)
    pad = "    " * depth
    text = indent(ast.unparse(node), pad)
    name = f"{owner}::{node.name}" if owner else node.name
    return Piece(text, name, indent(ast.unparse(twin), pad) if twin else None)


def _drop_docstring(node: Function) -> None:
    """A text of several lines would not survive being indented, and it asserts nothing."""
    if len(node.body) > 1 and ast.get_docstring(node, clean=False) is not None:
        del node.body[0]


def twinned(sources: dict[str, str], seed: int) -> frozenset[Key]:
    """Tests that have a twin by this seed."""
    return frozenset((f, p.name) for f, s in sources.items() for p in pieces(s, seed) if p.twin)


def half(sources: dict[str, str], seed: int, twins: frozenset[Key], without: frozenset[Key] = frozenset()) -> Half:
    """The files with `twins` in place of their tests; the tests in `without` are left out."""
    files = {}
    for file, source in sources.items():
        parts = [p for p in pieces(source, seed) if (file, p.name) not in without]
        chosen = [p.twin if p.twin and (file, p.name) in twins else p.text for p in parts]
        files[file] = ("\n".join(chosen) + "\n").encode()
    return Half(files, twins)


def two_halves(sources: dict[str, str], seed: int, usable: frozenset[Key]) -> list[Half]:
    """A fresh random cut of the usable twins over two halves, in random order; one half when there are none.

    Tests without a twin run once, in either half."""
    if not usable:
        return [half(sources, seed, frozenset())]
    single = {(f, p.name) for f, s in sources.items() for p in pieces(s, seed) if p.name} - usable
    first, only_first = _cut(usable), _cut(single)
    halves = [
        half(sources, seed, first, frozenset(single) - only_first),
        half(sources, seed, usable - first, only_first),
    ]
    random.SystemRandom().shuffle(halves)
    return halves


def _cut(keys: Collection[Key]) -> frozenset[Key]:
    """About half of them."""
    rng = random.SystemRandom()
    names = rng.sample(sorted(keys), len(keys))
    return frozenset(names[: (len(names) + rng.randrange(2)) // 2])
