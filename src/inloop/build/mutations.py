"""Ways to break a function: each yields an edit of a few bytes, so that the source keeps its formatting."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inloop.build.pysource import Edit, Function, Module, apply_edits, parse

KINDS = (
    "operator", "comparison", "constant", "boundary", "condition", "return", "arguments", "misspelling", "variable",
    "removed", "several",
)  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    kind: str
    edits: tuple[Edit, ...]

    @property
    def span(self) -> tuple[int, int]:
        return min(e.start for e in self.edits), max(e.end for e in self.edits)


Found = Iterator[tuple[str, Edit]]
Operator = Callable[[Module, Function, ast.AST], Found]

BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"), ast.Pow: ("**", "*"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"),
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], tuple[str, tuple[tuple[str, str], ...]]] = {
    ast.Eq: ("==", (("comparison", "!="),)),
    ast.NotEq: ("!=", (("comparison", "=="),)),
    ast.Lt: ("<", (("boundary", "<="), ("comparison", ">"))),
    ast.LtE: ("<=", (("boundary", "<"), ("comparison", ">="))),
    ast.Gt: (">", (("boundary", ">="), ("comparison", "<"))),
    ast.GtE: (">=", (("boundary", ">"), ("comparison", "<="))),
    ast.Is: ("is", (("comparison", "is not"),)),
    ast.IsNot: ("is not", (("comparison", "is"),)),
    ast.In: ("in", (("comparison", "not in"),)),
    ast.NotIn: ("not in", (("comparison", "in"),)),
}


def candidates(module: Module, function: Function) -> list[Mutation]:
    """Every single mutation of `function`, in source order, that still parses and changes the tree."""
    seen: set[tuple[Edit, ...]] = set()
    out = []
    check = _Changes(module, function)
    for node in _nodes(function):
        for operator in OPERATORS:
            for kind, edit in operator(module, function, node):
                mutation = Mutation(kind, (edit,))
                if mutation.edits not in seen and check(edit):
                    seen.add(mutation.edits)
                    out.append(mutation)
    return out


def several(singles: list[Mutation], rng: random.Random) -> Mutation | None:
    """Two or three single mutations at places apart from each other."""
    chosen: list[Mutation] = []
    for mutation in rng.sample(singles, len(singles)):
        start, end = mutation.span
        if all(end < s or start > e for s, e in (m.span for m in chosen)):
            chosen.append(mutation)
        if len(chosen) == 2 + (len(singles) % 2):
            break
    if len(chosen) < 2:
        return None
    return Mutation("several", tuple(sorted(e for m in chosen for e in m.edits)))


def mutate(module: Module, mutation: Mutation) -> bytes:
    return apply_edits(module.data, mutation.edits)


class _Changes:
    """Whether an edit leaves a function that parses to another tree; only the function itself is parsed."""

    def __init__(self, module: Module, function: Function) -> None:
        self.start, end = module.lines(function.first_line, function.last_line)
        self.data = module.data[self.start : end]
        self.before = self._dump(self.data)

    def __call__(self, edit: Edit) -> bool:
        moved = Edit(edit.start - self.start, edit.end - self.start, edit.text)
        after = self._dump(apply_edits(self.data, (moved,)))
        return after is not None and after != self.before

    @staticmethod
    def _dump(data: bytes) -> str | None:
        text = data.decode("utf-8-sig")
        head = "if 1:\n" if text[:1] in " \t" else ""
        try:
            return ast.dump(parse(head + text))
        except (SyntaxError, ValueError, RecursionError):
            return None


def _nodes(function: Function) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from _runtime(statement)


def _runtime(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that decide what happens: no annotations and no docstrings of nested functions."""
    yield node
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST):
                yield from _runtime(child)


def _gap(module: Module, left: ast.expr, right: ast.expr, symbol: str) -> tuple[int, int] | None:
    """Byte span of `symbol` between two operands; None where comments make it unsure."""
    start, end = module.span(left)[1], module.span(right)[0]
    gap = module.data[start:end].decode()
    pattern = r"\s+".join(re.escape(word) for word in symbol.split())
    match = re.search(rf"\b{pattern}\b" if symbol[0].isalpha() else pattern, gap)
    if match is None or "#" in gap:
        return None
    return start + len(gap[: match.start()].encode()), start + len(gap[: match.end()].encode())


def binary(module: Module, function: Function, node: ast.AST) -> Found:
    if isinstance(node, ast.BinOp) and not _is_text(node.left):
        symbol, new = BINARY.get(type(node.op), ("", ""))
        if symbol and (span := _gap(module, node.left, node.right, symbol)):
            yield "operator", Edit(*span, new)
    elif isinstance(node, ast.AugAssign):
        symbol, new = BINARY.get(type(node.op), ("", ""))
        if symbol and (span := _gap(module, node.target, node.value, symbol + "=")):
            yield "operator", Edit(*span, new + "=")


def _is_text(node: ast.expr) -> bool:
    """`'%s' % x` and f-strings: another operator there fails before anything is computed."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def boolean(module: Module, function: Function, node: ast.AST) -> Found:
    if isinstance(node, ast.BoolOp):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            if span := _gap(module, left, right, old):
                yield "condition", Edit(*span, new)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        start = module.span(node)[0]
        kind = "condition" if isinstance(node.op, ast.Not) else "operator"
        yield kind, Edit(start, module.span(node.operand)[0], "") if _bare(module, node) else Edit(start, start, "")


def _bare(module: Module, node: ast.UnaryOp) -> bool:
    """Nothing but the operator and blanks stand before the operand (no parenthesis to unbalance)."""
    between = module.data[module.span(node)[0] : module.span(node.operand)[0]].decode()
    return between.strip() in ("not", "-")


def comparison(module: Module, function: Function, node: ast.AST) -> Found:
    if not isinstance(node, ast.Compare):
        return
    operands = [node.left, *node.comparators]
    for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
        symbol, news = COMPARE[type(operator)]
        if span := _gap(module, left, right, symbol):
            for kind, new in news:
                yield kind, Edit(*span, new)


def constant(module: Module, function: Function, node: ast.AST) -> Found:
    if isinstance(node, ast.Slice | ast.Subscript | ast.Call):
        for part in _bounds(node):
            if isinstance(part, ast.Constant) and type(part.value) is int:
                yield "boundary", Edit(*module.span(part), str(part.value + 1))
        return
    if not isinstance(node, ast.Constant) or not hasattr(node, "lineno"):
        return
    if isinstance(node.value, bool):
        yield "constant", Edit(*module.span(node), str(not node.value))
    elif type(node.value) is int and module.source(node).isdigit():
        yield "constant", Edit(*module.span(node), str(node.value + 1))
        if node.value > 0:
            yield "constant", Edit(*module.span(node), str(node.value - 1))
    elif type(node.value) is float:
        yield "constant", Edit(*module.span(node), repr(node.value * 2 if node.value else 1.0))


def _bounds(node: ast.Slice | ast.Subscript | ast.Call) -> list[ast.expr | None]:
    if isinstance(node, ast.Slice):
        return [node.lower, node.upper, node.step]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    is_range = isinstance(node.func, ast.Name) and node.func.id in ("range", "islice", "enumerate")
    return list(node.args[-2:]) if is_range else []


def condition(module: Module, function: Function, node: ast.AST) -> Found:
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.UnaryOp | ast.Constant):
        start, end = module.span(node.test)
        yield "condition", Edit(start, end, f"not ({module.source(node.test)})")
    if isinstance(node, ast.IfExp):
        span = module.span(node.body)
        yield "condition", Edit(*span, module.source(node.orelse))
    if isinstance(node, ast.comprehension) and node.ifs:
        test = node.ifs[0]
        yield "condition", Edit(*module.span(test), f"not ({module.source(test)})")


def returned(module: Module, function: Function, node: ast.AST) -> Found:
    if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
        if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            first, second = node.value.elts
            swapped = f"{module.source(second)}, {module.source(first)}"
            yield "return", Edit(module.span(first)[0], module.span(second)[1], swapped)
        if isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant):
            yield "return", Edit(*module.span(node.value), "None")
        if isinstance(node.value, ast.Call) and node.value.args and not node.value.keywords:
            inner = node.value.args[0]
            if not isinstance(inner, ast.Starred | ast.GeneratorExp):
                yield "return", Edit(*module.span(node.value), module.source(inner))


def arguments(module: Module, function: Function, node: ast.AST) -> Found:
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
        return
    for left, right in zip(node.args, node.args[1:], strict=False):
        a, b = module.source(left), module.source(right)
        if a != b:
            start, end = module.span(left)[0], module.span(right)[1]
            between = module.data[module.span(left)[1] : module.span(right)[0]].decode()
            yield "arguments", Edit(start, end, b + between + a)


def misspelling(module: Module, function: Function, node: ast.AST) -> Found:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and len(node.id) >= 4:
        yield "misspelling", Edit(*module.span(node), misspell(node.id))
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and len(node.attr) >= 4:
        end = module.span(node)[1]
        yield "misspelling", Edit(end - len(node.attr.encode()), end, misspell(node.attr))


def misspell(name: str) -> str:
    """A slip of the fingers that depends on the name alone: two letters swapped, one dropped or one doubled."""
    at = 1 + sum(name.encode()) % (len(name) - 2)
    swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    options = (swapped, name[:at] + name[at + 1 :], name[: at + 1] + name[at:])
    first = sum(name.encode()) % 3
    return next(o for o in (*options[first:], *options) if o != name and o.isidentifier())


def variable(module: Module, function: Function, node: ast.AST) -> Found:
    """Another local name in place of the right one."""
    if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
        return
    names = _locals(function)
    if node.id in names and len(names) > 1:
        yield "variable", Edit(*module.span(node), names[(names.index(node.id) + 1) % len(names)])


def _locals(function: Function) -> list[str]:
    args = function.node.args
    given = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs) if a.arg not in ("self", "cls")]
    stored = [n.id for n in ast.walk(function.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return sorted({*given, *stored})


def removed(module: Module, function: Function, node: ast.AST) -> Found:
    """A statement taken out, where others stay in its block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield from _removals(module, block)
    if node is function.body[0]:
        yield from _removals(module, function.node.body)


def _removals(module: Module, block: list[ast.stmt]) -> Found:
    kept = (ast.Import, ast.ImportFrom, ast.Pass, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Global)
    for statement in block if len(block) > 1 else []:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, kept) or is_text or (statement.end_lineno or 0) - statement.lineno > 4:
            continue
        start, end = module.lines(statement.lineno, statement.end_lineno or statement.lineno)
        whole = module.data[start:end].decode().strip()
        if whole.split("#")[0].rstrip() == module.source(statement).split("#")[0].rstrip():
            yield "removed", Edit(start, end, "")


OPERATORS: tuple[Operator, ...] = (
    binary, boolean, comparison, constant, condition, returned, arguments, misspelling, variable, removed,
)  # fmt: skip
