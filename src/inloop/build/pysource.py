"""Python source as bytes with a syntax tree over it: functions, spans, and edits that touch nothing else."""

from __future__ import annotations

import ast
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the bytes [start, end) of a file."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Function:
    """A function or method of the module's top levels; what is nested in it is part of it."""

    path: str
    name: str
    """'name' or 'Class.name'."""
    node: FunctionNode

    @property
    def unit(self) -> str:
        return f"{self.path}::{self.name}"

    @property
    def first_line(self) -> int:
        """What `co_firstlineno` says: the first decorator's line, if there is one."""
        return min([self.node.lineno, *(d.lineno for d in self.node.decorator_list)])

    @property
    def last_line(self) -> int:
        return self.node.end_lineno or self.node.lineno

    @property
    def body(self) -> list[ast.stmt]:
        """Without the docstring."""
        return self.node.body[1:] if ast.get_docstring(self.node, clean=False) is not None else self.node.body


class Module:
    """One parsed file. Raises SyntaxError (also for bytes that are no text and for null bytes)."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        try:
            encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
            if encoding not in ("utf-8", "utf-8-sig"):
                raise SyntaxError(f"encoded in {encoding}")
            self.text = data.decode("utf-8-sig")
            self.tree = parse(self.text)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from None
        self._starts = [0]
        for line in data.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def offset(self, line: int, column: int) -> int:
        """Byte offset of a node's (1-based line, UTF-8 column)."""
        bom = 3 if line == 1 and self.data.startswith(b"\xef\xbb\xbf") else 0
        return self._starts[line - 1] + column + bom

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def source(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode()

    def lines(self, first: int, last: int) -> tuple[int, int]:
        """Byte span of whole lines, 1-based, the last one's newline included."""
        return self._starts[first - 1], min(self._starts[last], len(self.data))

    def functions(self) -> list[Function]:
        return list(_functions(self.path, self.tree.body, ""))


def parse(text: str) -> ast.Module:
    """`ast.parse` without warnings about the source's odd escapes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _functions(path: str, body: list[ast.stmt], prefix: str) -> Iterator[Function]:
    for node in body:
        if isinstance(node, FunctionNode):
            yield Function(path, prefix + node.name, node)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(path, node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            inner = [*node.body, *node.orelse, *(s for h in getattr(node, "handlers", ()) for s in h.body)]
            yield from _functions(path, inner, prefix)


def apply_edits(data: bytes, edits: tuple[Edit, ...]) -> bytes:
    """Edits must not overlap."""
    out, at = [], 0
    for edit in sorted(edits):
        assert edit.start >= at, "overlapping edits"
        out += [data[at : edit.start], edit.text.encode()]
        at = edit.end
    return b"".join([*out, data[at:]])


def parses(data: bytes) -> bool:
    try:
        parse(data.decode("utf-8-sig"))
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
