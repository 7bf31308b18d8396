"""The functions of the starter set: their source with all that it needs, and the inputs that they are tried on."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
Arguments = tuple[Any, ...]
PACKAGE = "inloop.build.starter.lib"


def cases(*inputs: Any) -> Callable[[F], F]:
    """Marks a function as task material. An input is a tuple of arguments, or the one argument itself."""

    def mark(function: F) -> F:
        function.__dict__["cases"] = tuple(i if isinstance(i, tuple) else (i,) for i in inputs)
        return function

    return mark


@dataclass(frozen=True, eq=False)
class Entry:
    """One function, ready to stand in a file of its own."""

    area: str
    """The module of the library that it is from."""
    name: str
    source: str
    """A whole module: the imports, constants and helpers that the function needs, then the function."""
    cases: tuple[Arguments, ...]

    @property
    def unit(self) -> str:
        return f"{self.area}.py::{self.name}"


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Every function of the library, in a fixed order."""
    package = importlib.import_module(PACKAGE)
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__))
    return tuple(e for name in names for e in _entries_of(name))


def _entries_of(area: str) -> list[Entry]:
    module = importlib.import_module(f"{PACKAGE}.{area}")
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    parts = _parts(text)
    marked = [n for n in parts if hasattr(getattr(module, n, None), "cases")]
    return [Entry(area, n, _closure(n, parts), getattr(module, n).cases) for n in marked]


@dataclass(frozen=True)
class _Part:
    """A statement at the top of a library module."""

    order: int
    text: str
    needs: frozenset[str]
    is_function: bool


def _parts(text: str) -> dict[str, _Part]:
    """Name -> the top-level statement that binds it; decorators are left out."""
    lines = text.splitlines()
    out: dict[str, _Part] = {}
    for order, node in enumerate(ast.parse(text).body):
        whole = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        is_function = isinstance(node, ast.FunctionDef)
        body = ast.parse(whole)
        needs = {n.id for n in ast.walk(body) if isinstance(n, ast.Name)} - set(dir(builtins))
        for name in _bound(node):
            text_of = ast.unparse(_only(node, name)) if isinstance(node, ast.Import | ast.ImportFrom) else whole
            out[name] = _Part(order, text_of, frozenset(needs - {name}), is_function)
    return out


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [a.asname or a.name for a in node.names]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    return []


def _only(node: ast.Import | ast.ImportFrom, name: str) -> ast.stmt:
    kept = [a for a in node.names if name in (a.asname, a.name)]
    return ast.Import(kept) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, kept, 0)


def _closure(name: str, parts: dict[str, _Part]) -> str:
    wanted, waiting = {name}, [name]
    while waiting:
        fresh = [n for n in parts[waiting.pop()].needs if n in parts and n not in wanted]
        wanted.update(fresh)
        waiting += fresh
    chosen = sorted((parts[n] for n in wanted), key=lambda p: (p.is_function, p.order))
    heads = [p.text for p in chosen if not p.is_function]
    functions = [p.text for p in chosen if p.is_function]
    return "\n\n\n".join(["\n".join(heads), *functions] if heads else functions) + "\n"
