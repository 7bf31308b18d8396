"""The library: enough of it, every function runs on its cases, and each can be broken in several ways."""

from __future__ import annotations

import ast
import io
import itertools
import sys
import tokenize

import pytest

from inloop.build.starter.breaks import KINDS, breaks, expected, plausible_lines
from inloop.build.starter.library import Entry, cases, entries
from inloop.build.starter.plan import split_of
from inloop.build.starter.trial import Outcome, attempt_all

LIBRARY = entries()
FEW = LIBRARY[::25]


def test_there_is_enough_to_train_on_and_to_hold_out() -> None:
    assert len(LIBRARY) >= 600 and len({e.area for e in LIBRARY}) >= 40
    splits = split_of(LIBRARY)
    assert 180 <= sum(s == "test" for s in splits.values()) <= 220
    assert len({e.unit for e in LIBRARY}) == len({e.name for e in LIBRARY}) == len(LIBRARY)


def test_what_is_held_out_depends_on_the_name_alone() -> None:
    whole = split_of(LIBRARY)
    assert split_of(LIBRARY[::3]).items() <= whole.items()
    assert {e.area for e in LIBRARY if whole[e.unit] == "test"} == {e.area for e in LIBRARY}


@pytest.mark.parametrize("entry", LIBRARY, ids=lambda e: e.unit)
def test_a_function_runs_on_its_cases(entry: Entry) -> None:
    assert 9 <= len(entry.cases) <= 16 and entry.source.count("\n") <= 18
    assert entry.name not in sys.stdlib_module_names
    for outcome in expected(entry):
        assert not outcome.error
        assert eval(repr(outcome.value)) == outcome.value  # it can be written into a test
    assert len({repr(o.value) for o in expected(entry)}) >= 2


@pytest.mark.parametrize("entry", FEW, ids=lambda e: e.unit)
def test_a_function_can_be_broken_in_several_ways(entry: Entry) -> None:
    found = breaks(entry)
    assert len({b.kind for b in found}) >= 4 and {b.kind for b in found} <= set(KINDS)
    assert plausible_lines(entry) >= 2
    for change in found:
        assert len(change.failing) >= 2
        wrong, right = change.source.splitlines(), entry.source.splitlines()
        assert wrong != right
        assert change.source.count(wrong[change.line - 1]) == 1  # an edit finds its place by the line alone


def test_a_misspelling_is_named_by_what_it_raises() -> None:
    entry = LIBRARY[0]
    slips = [b for b in breaks(entry) if b.kind == "misspelling"]
    assert slips
    for slip in slips:
        assert slip.misspelt
        told = attempt_all(slip.source, entry.name, [entry.cases[slip.failing[0]]])[0]
        assert told.error in ("NameError", "AttributeError", "UnboundLocalError")
        assert slip.misspelt[1] in told.message


def test_an_endless_loop_ends() -> None:
    outcomes = attempt_all("def f(x):\n    while True:\n        x += 1\n", "f", [(1,), (2,)])
    assert [o.error for o in outcomes] == ["Stuck", "Stuck"]
    caught = "def f(x):\n    try:\n        while True:\n            x += 1\n    except Exception:\n        return x\n"
    assert attempt_all(caught, "f", [(1,)])[0].error == "Stuck"


def test_arguments_are_not_shared_between_cases() -> None:
    given = ([1],)
    assert attempt_all("def f(x):\n    x.append(2)\n    return x\n", "f", [given, given])[1].value == [1, 2]
    assert given == ([1],)


def test_outcomes_are_compared_as_the_tests_do() -> None:
    assert Outcome(value=1.0).agrees(1)
    assert not Outcome(value=1).agrees(True)
    assert not Outcome(value=True).agrees(1)
    assert not Outcome(error="ValueError").agrees(None)
    assert Outcome(value=None).agrees(None)


def test_an_input_that_is_no_tuple_is_the_one_argument() -> None:
    @cases(1, (2, 3), [4])
    def function() -> None: ...

    assert function.__dict__["cases"] == ((1,), (2, 3), ([4],))


def test_an_entry_brings_what_it_needs_and_no_more() -> None:
    by_name = {e.name: e for e in LIBRARY}
    assert by_name["distance"].source.startswith("import math\n")
    assert "DAYS = " in by_name["day_of_year"].source and "NAMES" not in by_name["day_of_year"].source
    assert "import" not in by_name["slug"].source and "@cases" not in by_name["slug"].source


def shape(entry: Entry) -> frozenset[tuple[str, ...]]:
    """Runs of four tokens of the bodies, with the function's own names numbered: what renaming leaves alike."""
    runs: set[tuple[str, ...]] = set()
    for function in [n for n in ast.parse(entry.source).body if isinstance(n, ast.FunctionDef)]:
        own = {a.arg for a in function.args.args}
        own |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        numbers: dict[str, str] = {}
        body = "\n".join(ast.unparse(statement) for statement in function.body[1:])  # without the docstring
        words = [t.string for t in tokenize.generate_tokens(io.StringIO(body).readline) if t.string.strip()]
        plain = [numbers.setdefault(w, f"n{len(numbers)}") if w in own else w for w in words]
        runs |= {tuple(plain[i : i + 4]) for i in range(len(plain) - 3)}
    return frozenset(runs)


def test_nothing_held_out_is_nearly_a_training_function() -> None:
    shapes, splits = {e.unit: shape(e) for e in LIBRARY}, split_of(LIBRARY)
    held_out = [u for u, split in splits.items() if split == "test"]
    for unit, other in itertools.product(held_out, shapes.keys() - set(held_out)):
        a, b = shapes[unit], shapes[other]
        assert len(a & b) < 0.6 * len(a | b), (unit, other)
