"""Turns a hidden test into one that asks for a wrong answer: same names, same calls, another expectation."""

from __future__ import annotations

import ast
import builtins
import copy
import random
from collections.abc import Callable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef

OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPPOSITE_METHOD = {
    a: b
    for pair in (
        ("assertEqual", "assertNotEqual"), ("assertTrue", "assertFalse"), ("assertIn", "assertNotIn"),
        ("assertIs", "assertIsNot"), ("assertIsNone", "assertIsNotNone"), ("assertGreater", "assertLessEqual"),
        ("assertLess", "assertGreaterEqual"), ("assertIsInstance", "assertNotIsInstance"),
        ("assertAlmostEqual", "assertNotAlmostEqual"), ("assertRegex", "assertNotRegex"),
    )
    for a, b in (pair, pair[::-1])
}  # fmt: skip
SAME_AS_EQUAL = {
    "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual", "assertSequenceEqual",
    "assertMultiLineEqual", "assertCountEqual",
}  # fmt: skip
RAISES = {"raises", "assertRaises", "assertRaisesRegex"}
CLOCKS = {"perf_counter", "perf_counter_ns", "monotonic", "process_time", "thread_time", "timeit", "time_ns"}
OTHER_ERRORS = (KeyError, IndexError, OSError, AttributeError, ZeroDivisionError, TypeError, ValueError, RuntimeError)
"""Classes of which none is a base of another, so that one can be asked for in place of another."""


def mutate(function: Function, tables: dict[str, ast.expr], rng: random.Random) -> Function | None:
    """A changed copy, or None when it asserts nothing that can be changed. `tables`: literals of the module by name.

    A changed expected value is preferred (it looks like any other test); a reversed comparison is the last resort."""
    if _reads_clock(function):
        return None  # whether it passes depends on the machine's load, so a twin proves nothing
    twin = copy.deepcopy(function)
    _inline_tables(twin, tables)
    for family in (_expectations, _reversals):
        sites = list(family(twin))
        if sites:
            rng.choice(sites)(rng)
            return ast.fix_missing_locations(twin)
    return None


def _reads_clock(function: Function) -> bool:
    names = {n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)}
    names |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    return bool(names & CLOCKS)


Site = Callable[[random.Random], None]


def _expectations(function: Function) -> Iterator[Site]:
    """Places that hold an expected value or an expected error."""
    names = _local_literals(function) | _loops(function) | _parameters(function)
    names = {name: groups for name, groups in names.items() if _uses(function, name) == 1}
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield from _of_assert(node, names)
        elif isinstance(node, ast.Call):
            yield from _of_call(node, names)


def _of_assert(node: ast.Assert, names: dict[str, list[ast.AST]]) -> Iterator[Site]:
    test = node.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
        yield from _sides(test.comparators[0], test.left, names)


def _of_call(node: ast.Call, names: dict[str, list[ast.AST]]) -> Iterator[Site]:
    name = _called(node)
    if name in RAISES and node.args and _unrelated(node):
        yield lambda rng: _other_error(node, rng)
    equal = name in SAME_AS_EQUAL or name in ("assertEqual", "assertAlmostEqual")
    if equal and isinstance(node.func, ast.Attribute) and len(node.args) >= 2:
        yield from _sides(node.args[1], node.args[0], names)


def _sides(right: ast.expr, left: ast.expr, names: dict[str, list[ast.AST]]) -> Iterator[Site]:
    """The literal side of an equality; where neither is one, the literals that its name stands for."""
    for side, other in ((right, left), (left, right)):
        if not _has_call(other) and _has_call(side):
            continue
        groups = names.get(side.id, []) if isinstance(side, ast.Name) else [side]
        if groups and all(_leaves(g) for g in groups):
            yield lambda rng, groups=groups: _change_each(groups, rng)  # type: ignore[misc]
            return


def _change_each(groups: list[ast.AST], rng: random.Random) -> None:
    for group in groups:
        leaf = rng.choice(_leaves(group))
        leaf.value = other_value(leaf.value, rng)


def _leaves(node: ast.AST) -> list[ast.Constant]:
    """Constants of a literal; none when a call is in it (changing its arguments is no other expectation)."""
    if isinstance(node, ast.Call) and _called(node) != "approx":
        return []
    if isinstance(node, ast.Constant):
        return [] if node.value is None or node.value is ... else [node]
    if isinstance(node, ast.Dict):
        return [leaf for value in node.values for leaf in _leaves(value)]
    if isinstance(node, ast.Subscript | ast.Attribute | ast.Lambda):
        return []
    return [leaf for child in ast.iter_child_nodes(node) for leaf in _leaves(child)]


def other_value(value: object, rng: random.Random) -> bool | int | float | complex | str | bytes:
    """A value of the same type that is unlikely to be what a common mistake gives (not off by one)."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        far = max(7, abs(value) // 7)
        return value + rng.choice((-1, 1)) * rng.randint(3, far + 4)
    if isinstance(value, float):
        return round(value + rng.choice((-1, 1)) * (abs(value) * rng.uniform(0.2, 0.6) + 1.5), 4)
    if isinstance(value, complex):
        return value + rng.randint(3, 9)
    if isinstance(value, bytes):
        return _other_text(value.decode("latin-1"), rng).encode("latin-1")
    return _other_text(str(value), rng)


def _other_text(text: str, rng: random.Random) -> str:
    if not text:
        return rng.choice("abdeghkmnprtuvw") * rng.randint(1, 3)
    spots = [n for n, c in enumerate(text) if c.isalnum()] or list(range(len(text)))
    at = rng.choice(spots)
    pool = "0123456789" if text[at].isdigit() else "abdeghkmnprtuvwz"
    new = rng.choice([c for c in pool if c != text[at].lower()])
    return text[:at] + (new.upper() if text[at].isupper() else new) + text[at + 1 :]


def _unrelated(node: ast.Call) -> list[type[Exception]]:
    """Errors that a `raises` of these classes does not accept; none for `Exception`."""
    asked = {n.id for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
    return [e for e in OTHER_ERRORS if not any(_related(e, name) for name in asked)]


def _other_error(node: ast.Call, rng: random.Random) -> None:
    node.args[0] = ast.Name(rng.choice(_unrelated(node)).__name__, ast.Load())


def _related(error: type[Exception], name: str) -> bool:
    known = getattr(builtins, name, None)
    return isinstance(known, type) and (issubclass(known, error) or issubclass(error, known))


def _reversals(function: Function) -> Iterator[Site]:
    """Comparisons and conditions that can be asked the other way round."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield lambda rng, node=node: _reverse(node)  # type: ignore[misc]
        elif isinstance(node, ast.Call) and (other := OPPOSITE_METHOD.get(_called(node))):
            yield lambda rng, node=node, other=other: setattr(node.func, "attr", other)  # type: ignore[misc]


def _reverse(node: ast.Assert) -> None:
    test = node.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        test.ops[0] = OPPOSITE[type(test.ops[0])]()
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        node.test = test.operand
    else:
        node.test = ast.UnaryOp(ast.Not(), test)


def _local_literals(function: Function) -> dict[str, list[ast.AST]]:
    """Names that the function sets once, to a literal."""
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return {name: values for name, values in found.items() if len(values) == 1}


def _parameters(function: Function) -> dict[str, list[ast.AST]]:
    """Names of `parametrize`, with the literals of their column, one a row."""
    found: dict[str, list[ast.AST]] = {}
    for decorator in function.decorator_list:
        if not (isinstance(decorator, ast.Call) and _called(decorator) == "parametrize" and len(decorator.args) >= 2):
            continue
        names = _argument_names(decorator.args[0])
        rows = decorator.args[1].elts if isinstance(decorator.args[1], ast.List | ast.Tuple) else []
        for column, name in enumerate(names):
            cells = [_cell(row, column, len(names)) for row in rows]
            if cells and all(cells):
                found[name] = [c for c in cells if c is not None]
    return found


def _loops(function: Function) -> dict[str, list[ast.AST]]:
    """Names that a loop over literal rows sets, with a literal of one of the rows."""
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple) and node.iter.elts:
            names = [node.target] if isinstance(node.target, ast.Name) else getattr(node.target, "elts", [])
            for column, name in enumerate(names):
                cells = [_cell(row, column, len(names)) for row in node.iter.elts]
                if isinstance(name, ast.Name) and all(cells):
                    found[name.id] = [ast.Tuple([c for c in cells if c is not None], ast.Load())]
    return found


def _uses(function: Function, name: str) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(function))


def _argument_names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [n.strip() for n in node.value.split(",") if n.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        return [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    return []


def _cell(row: ast.expr, column: int, width: int) -> ast.expr | None:
    if isinstance(row, ast.Call) and _called(row) == "param":
        return row.args[column] if len(row.args) == width else None
    if width == 1:
        return row
    return row.elts[column] if isinstance(row, ast.Tuple | ast.List) and len(row.elts) == width else None


def _inline_tables(function: Function, tables: dict[str, ast.expr]) -> None:
    """Rows that stand in the module under a name are copied into the decorator, so that they can differ."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and _called(decorator) == "parametrize" and len(decorator.args) >= 2:
            rows = decorator.args[1]
            if isinstance(rows, ast.Name) and rows.id in tables:
                decorator.args[1] = copy.deepcopy(tables[rows.id])


def _has_call(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and _called(n) != "approx" for n in ast.walk(node))


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""
