"""A test file divided in two: what the agent may see and what decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from inloop.build.pysource import Edit, FunctionNode, Module, apply_edits


def function_of(node_id: str) -> str:
    """'tests/test_x.py::Class::test_a[1-2]' -> 'tests/test_x.py::Class::test_a'."""
    path, *names = node_id.split("::")
    return "::".join([path, *names]).split("[")[0] if names else path


def file_of(node_id: str) -> str:
    return node_id.split("::")[0]


class TestFile:
    """Test functions of one file by 'Class::name'. Raises SyntaxError."""

    __test__ = False

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.module = path, Module(path, data)
        self.functions: dict[str, FunctionNode] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self._collect(self.module.tree.body, "")

    def _collect(self, body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, FunctionNode) and node.name.startswith("test"):
                self.functions[prefix + node.name] = node
            elif isinstance(node, ast.ClassDef):
                self.classes[prefix + node.name] = node
                self._collect(node.body, f"{prefix}{node.name}::")

    def without(self, names: Iterable[str]) -> bytes:
        """The file without these test functions; a class that holds nothing else goes with them."""
        gone = {id(self.functions[n]): self.functions[n] for n in names if n in self.functions}
        edits: list[Edit] = []
        self._cut(self.module.tree.body, gone, edits)
        return _tidy(apply_edits(self.module.data, tuple(edits)))

    def only(self, names: Iterable[str]) -> bytes:
        """The file with these test functions and no others; helpers and fixtures stay."""
        return self.without(set(self.functions) - set(names))

    def inherited(self, name: str) -> list[str]:
        """'Heir::test' for each class of the file that has this test from 'Class::test' and does not override it."""
        owner, _, test = name.rpartition("::")
        heirs, grown = {owner} if owner else set(), True
        while grown:
            more = {c for c, node in self.classes.items() if heirs & {getattr(b, "id", "") for b in node.bases}} - heirs
            grown = bool(more)
            heirs |= more
        return sorted(f"{c}::{test}" for c in heirs - {owner} if f"{c}::{test}" not in self.functions)

    def source(self, name: str) -> str:
        return self.module.source(self.functions[name])

    def first_check(self, name: str) -> int:
        """The line of the first assertion of a test, else of its first statement; 0 for one that is not in the file."""
        function = self.functions.get(name)
        if function is None:
            return 0
        checks = (n.lineno for n in ast.walk(function) if isinstance(n, ast.Assert))
        return next(checks, function.body[0].lineno)

    def imports(self, names: Iterable[str]) -> list[str]:
        """The import statements of the file's top level that bind one of `names`."""
        wanted, out = set(names), []
        for node in self.module.tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                bound = {(a.asname or a.name).split(".")[0] for a in node.names}
                out += [self.module.source(node)] if bound & wanted else []
        return out

    def statement(self, line: int) -> str:
        """The innermost simple statement, or the head of the block, that covers a line; '' if there is none."""
        best: ast.stmt | None = None
        for node in ast.walk(self.module.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
                best = node if best is None or _size(node) <= _size(best) else best
        if best is None or isinstance(best, FunctionNode | ast.ClassDef):
            return ""
        return _dedented(self.module, best)

    def _cut(self, body: list[ast.stmt], gone: dict[int, FunctionNode], edits: list[Edit]) -> bool:
        """Add the edits; True if nothing but a docstring is left of the block."""
        left = 0
        for node in body:
            if id(node) in gone:
                edits.append(self._lines(node))
            elif isinstance(node, ast.ClassDef):
                inner: list[Edit] = []
                empty = self._cut(node.body, gone, inner) and bool(inner)
                if empty and self._related(node):
                    inner[0] = Edit(inner[0].start, inner[0].end, f"{' ' * (node.col_offset + 4)}pass\n")
                    empty = False
                edits.extend([self._lines(node)] if empty else inner)
                left += not empty
            else:
                left += not _is_text(node)
        return not left

    def _related(self, node: ast.ClassDef) -> bool:
        """It gives tests to another class of the file, or gets some from one."""
        bases = {c.name: {getattr(b, "id", "") for b in c.bases} for c in self.classes.values()}
        return bool(bases[node.name] & bases.keys()) or any(node.name in b for b in bases.values())

    def _lines(self, node: ast.stmt) -> Edit:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        return Edit(*self.module.lines(first, node.end_lineno or node.lineno), "")


def _size(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _dedented(module: Module, node: ast.stmt) -> str:
    if isinstance(node, ast.With | ast.AsyncWith | ast.For | ast.If | ast.While | ast.Try) and _size(node) > 12:
        return ""
    lines = module.source(node).split("\n")
    rest = [x[node.col_offset :] if x[: node.col_offset].isspace() else x for x in lines[1:]]
    return "\n".join([lines[0], *rest])


def _tidy(data: bytes) -> bytes:
    """At most two empty lines in a row, as before the cut."""
    return re.sub(rb"\n(?:[ \t]*\n){3,}", b"\n\n\n", data)
