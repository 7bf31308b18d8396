"""Twins ask for a wrong answer under the same names; the cut over two halves is fair and fresh."""

from __future__ import annotations

import ast
import json
import random
from typing import Any

import pytest

from inloop.errors import TaskError
from inloop.sandbox.base import Diff
from inloop.verify import twins
from inloop.verify.halves import half, key_of, pieces, twinned, two_halves
from inloop.verify.mutate import mutate, other_value
from inloop.verify.verifier import Verifier

CASES = {
    "assert f(1) == 5": "assert f(1) == ",
    "assert 5 == f(1)": " == f(1)",
    "assert f() == {'a': [1, (2, 'x')]}": "assert f() == {'a': ",
    "assert f(3) == pytest.approx(2.5)": "pytest.approx(",
    "assert f() is True": "assert f() is False",
    "assert f() is None": "assert f() is not None",
    "assert f(1) == f(2)": "assert f(1) != f(2)",
    "assert f(1)": "assert not f(1)",
    "assert not f(1)": "assert f(1)",
    "assert 1 in f()": "assert 1 not in f()",
    "assert f() < 3": "assert f() >= 3",
    "self.assertEqual(f(1), [1])": "self.assertEqual(f(1), [",
    "self.assertTrue(f())": "self.assertFalse(f())",
    "self.assertIsNone(f())": "self.assertIsNotNone(f())",
    "want = 3; got = f(); assert got == want": "assert got == want",
    "for a, w in [(1, 2), (3, 4)]: assert f(a) == w": "assert f(a) == w",
}


def function(body: str) -> ast.FunctionDef:
    node = ast.parse(f"def test_x(self=None):\n    {body}").body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


@pytest.mark.parametrize("body", CASES)
def test_each_shape_of_assertion_has_a_twin(body: str) -> None:
    for seed in range(20):
        twin = mutate(function(body), {}, random.Random(seed))
        assert twin is not None
        text = ast.unparse(twin)
        assert CASES[body] in text and text != ast.unparse(function(body))


def test_errors_are_replaced_by_unrelated_ones() -> None:
    for seed in range(30):
        twin = mutate(function("with pytest.raises((KeyError, ValueError)): f()"), {}, random.Random(seed))
        assert twin is not None
        asked = eval(ast.unparse(twin).partition("raises(")[2].partition(")")[0])
        assert not issubclass(asked, KeyError | ValueError) and not issubclass(KeyError, asked)
    assert mutate(function("with pytest.raises(Exception): f()"), {}, random.Random(1)) is None


def test_what_cannot_be_asked_differently_has_no_twin() -> None:
    assert mutate(function("f(1)"), {}, random.Random(1)) is None
    timed = "t = time.perf_counter(); f(); assert time.perf_counter() - t < 1"
    assert mutate(function(timed), {}, random.Random(1)) is None


@pytest.mark.parametrize("value", [0, 1, -1, 12345, True, 1.5, 0.0, "", "a", "A9", "--", b"", b"x", 1j])
def test_other_values_differ_and_are_not_off_by_one(value: Any) -> None:
    for seed in range(50):
        other = other_value(value, random.Random(seed))
        assert type(other) is type(value) and other != value
        if type(value) is int:
            assert isinstance(other, int) and abs(other - value) >= 3


SOURCE = '''
import pytest
TABLE = [("a", 1), ("b", 2)]

@pytest.mark.parametrize("x, want", TABLE)
def test_table(x, want):
    """Doc
    of two lines."""
    assert f(x) == want

class TestC:
    """Doc
    string."""
    at = 3
    def helper(self): return 1
    def test_m(self): assert self.helper() == 1
    def test_n(self): g()

def test_plain(): assert f("c") == 3
'''


def test_halves_are_complementary_and_look_alike() -> None:
    sources = {"test_a.py": SOURCE}
    usable = twinned(sources, 7)
    assert usable == {("test_a.py", n) for n in ("test_table", "TestC::test_m", "test_plain")}
    seen = set()
    for _ in range(60):
        one, two = two_halves(sources, 7, usable)
        assert one.twins | two.twins == usable and not one.twins & two.twins
        seen.add(one.twins)
        texts = [h.files["test_a.py"].decode() for h in (one, two)]
        for text in texts:
            ast.parse(text)
            assert all(f"def {n}(" in text for n in ("test_table", "test_m", "test_plain", "helper"))
        assert sum("def test_n(" in t for t in texts) == 1
    assert len(seen) > 3


def test_the_untouched_half_is_the_test_file() -> None:
    text = half({"t.py": SOURCE}, 3, frozenset()).files["t.py"].decode()
    assert [p.text for p in pieces(SOURCE, 3)] == [p.text for p in pieces(SOURCE, 4)]
    names = [n.name for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    assert names == [n.name for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.FunctionDef)]


def test_keys() -> None:
    assert key_of("d/test_x.py::TestC::test_a[1::2-[x]]") == ("d/test_x.py", "TestC::test_a")


def test_twins_that_do_not_fail_on_the_solution_are_dropped_and_told(make_task: Any, verifier: Verifier) -> None:
    tests = "from a import f\ndef test_good(): assert f(1) == 2\ndef test_weak():\n    try: assert f(0) == 1\n"
    tests += "    except AssertionError: pass\ndef test_none(): f(3)\n"
    code = {"a.py": "def f(x): return x + 1\n"}
    task = make_task({"a.py": ""}, {"test_a.py": tests}, code, mode="split", modules=("a",))
    saved = json.loads((task.tests / "twins.json").read_text())
    assert {tuple(s["tests"]) for s in saved["seeds"].values()} == {("test_a.py::test_good",)}
    assert len(saved["seeds"]) == twins.VARIANTS
    assert "does not fail on the solution" in saved["dropped"]["test_a.py::test_weak"]
    assert "asserts nothing" in saved["dropped"]["test_a.py::test_none"]
    loaded = twins.load(task, {"test_a.py": tests})
    assert loaded is not None and loaded.count == 1
    assert twins.load(task, {"test_a.py": tests.replace("== 2", "== 3")}) is None, "twins of other tests"
    (task.tests / "twins.json").write_text("{")
    with pytest.raises(TaskError, match=r"twins\.json"):
        twins.load(task, {"test_a.py": tests})


def test_unchecked_twins_are_checked_at_the_first_verification(make_task: Any) -> None:
    solution = {"a.py": "def f(x): return x + 1\n"}
    tests = {"test_a.py": "from a import f\ndef test_a(): assert f(1) == 2\n"}
    task = make_task({"a.py": ""}, tests, solution, mode="forked")
    (task.tests / "twins.json").unlink()
    own = Verifier(cache=False)
    assert own.prepare(task).twins.count == 1
    equal = b"class E:\n    def __eq__(s, o): return True\ndef f(x): return E()\n"
    assert own.verify(task, Diff(changed={"a.py": equal})).verdict == "cheat"
    (task.solution / "files" / "a.py").unlink()
    (task.solution / "files").rmdir()
    reward = Verifier(cache=False).verify(task, Diff(changed={k: v.encode() for k, v in solution.items()}))
    assert reward.value == 1.0 and any("no canary twins" in e for e in reward.evidence)
