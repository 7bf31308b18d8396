"""Split mode: what crosses between trusted tests and the submission, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from inloop.sandbox.base import Diff
from inloop.tasks.task import Limits, Task
from inloop.types import Reward, Verdict
from inloop.verify.verifier import Verifier

LIBRARY = '''
"""Functions of every shape that tests may call."""
import collections, contextlib, datetime, decimal, fractions, itertools, math, pathlib, sys

LIMIT = 10
NAMES = {"a": (1, 2), "b": {3}}


class ParseError(ValueError):
    def __init__(self, message, position):
        super().__init__(message)
        self.position = position


class Deep(ParseError):
    pass


def same(value): return value
def total(*numbers, start=0): return sum(numbers, start)
def sort_in_place(items): items.sort(key=lambda x: -x)
def grow(table, seen): table["new"] = [1]; seen.add(9)
def apply(function, items): return [function(x) for x in items]
def count(): return itertools.count(5)
def numbers(n):
    for i in range(n):
        yield i
    return "end"
def adder(n): return lambda x: x + n
def fail(kind): raise {"parse": Deep("bad", 7), "key": KeyError("k"), "exit": SystemExit(3)}[kind]
def say(): print("hello"); print("oops", file=sys.stderr)
def rich():
    return [datetime.datetime(2024, 1, 2, 3, 4, 5, 6, datetime.timezone.utc), datetime.timedelta(1, 2),
            datetime.date(1, 1, 1), decimal.Decimal("1.50"), fractions.Fraction(1, 3),
            pathlib.PurePosixPath("/a/b"), collections.Counter("aab"),
            collections.OrderedDict(a=1), collections.deque([1], 3), 1 << 5000, b"\\xff", bytearray(b"a"), 1 + 2j,
            range(1, 9, 2), frozenset({1}), ..., "\\ud800", float("inf"), -0.0, {(1, 2): None}]
def mapped(items): return map(str, items)
def secret(): return object()
def stateful(counter=[0]):
    counter[0] += 1
    return counter[0]
'''

TESTS = """
import collections, datetime, decimal, fractions, inspect, itertools, math, pathlib
import pytest
import lib
from lib import *
from lib import Deep, ParseError, LIMIT
import pkg.inner.deep as deep
from helper import HELP, DATA


def test_exact_types():
    for value in (None, True, 1, 1.5, "x", b"y", (1, [2, {"k": {3}}]), frozenset({1})):
        assert same(value) == value and type(same(value)) is type(value)
    assert math.isnan(same(float("nan")))

def test_rich_values():
    got = rich()
    assert got[0] == datetime.datetime(2024, 1, 2, 3, 4, 5, 6, datetime.timezone.utc) and got[0].tzinfo is not None
    assert got[1:7] == [datetime.timedelta(1, 2), datetime.date(1, 1, 1), decimal.Decimal("1.50"),
                        fractions.Fraction(1, 3), pathlib.PurePosixPath("/a/b"), collections.Counter("aab")]
    assert type(got[7]) is collections.OrderedDict and got[8].maxlen == 3 and got[9] == 1 << 5000
    assert got[10:16] == [b"\\xff", bytearray(b"a"), 1 + 2j, range(1, 9, 2), frozenset({1}), ...]
    assert got[16:18] == ["\\ud800", float("inf")] and math.copysign(1, got[18]) == -1 and got[19] == {(1, 2): None}

def test_arguments():
    assert total(1, 2, start=3) == 6 and LIMIT == 10 and lib.NAMES["b"] == {3}

def test_changed_in_place():
    items = [1, 3, 2]; inner = [1]; table = {"inner": inner}; seen = set()
    assert sort_in_place(items) is None and items == [3, 2, 1]
    grow(table, seen=seen)
    assert table == {"inner": [1], "new": [1]} and seen == {9}

def test_callbacks_and_closures():
    calls = []
    def double(x): calls.append(x); return 2 * x
    assert apply(double, [1, 2]) == [2, 4] and calls == [1, 2]
    assert apply(str, [1]) == ["1"] and adder(3)(4) == 7 and apply(adder(1), [1]) == [2]
    with pytest.raises(ZeroDivisionError):
        apply(lambda x: 1 // x, [0])

def test_iterators():
    assert inspect.isgenerator(numbers(2)) and list(numbers(3)) == [0, 1, 2]
    assert list(itertools.islice(count(), 3)) == [5, 6, 7] and list(mapped([1])) == ["1"]

def test_exceptions():
    with pytest.raises(ParseError, match="bad") as info:
        fail("parse")
    assert info.value.position == 7 and type(info.value) is Deep and isinstance(info.value, ValueError)
    with pytest.raises(KeyError):
        fail("key")
    with pytest.raises(SystemExit) as info:
        fail("exit")
    assert info.value.code == 3

def test_printed(capsys):
    say()
    assert capsys.readouterr() == ("hello\\n", "oops\\n")

def test_submodules():
    assert deep.one() == 1 and HELP == 41 and DATA == "data"

@pytest.mark.parametrize("n", [1, 2])
def test_state_lives_on(n):
    assert stateful() == n

def test_no_objects():
    with pytest.raises(Exception, match="does not cross"):
        secret()

def test_no_file_of_the_submission_is_here():
    assert not pathlib.Path("/workspace").exists()
"""
SOLUTION = {"lib.py": LIBRARY, "pkg/__init__.py": "", "pkg/inner/__init__.py": ""}
SOLUTION["pkg/inner/deep.py"] = "def one(): return 1\n"
TEST_F = {"test_a.py": "from a import f\ndef test_f(): assert f() == 1\n"}
ONE = "def f(): return 1\n"
HELPER = "from pathlib import Path\nHELP = 41\nDATA = (Path(__file__).parent / 'd' / 'x.txt').read_text()\n"


@pytest.fixture(scope="module")
def task(make_task: Any) -> Task:
    return make_task(
        {"lib.py": "", "README": "x"}, {"test_lib.py": TESTS, "helper.py": HELPER, "d/x.txt": "data"}, SOLUTION,
        mode="split", modules=("lib", "pkg"),
    )  # fmt: skip


def judge(verifier: Verifier, task: Task, **files: str) -> Reward:
    changed = SOLUTION | {f"{k}.py": v for k, v in files.items()}
    return verifier.verify(task, Diff(changed={k: v.encode() for k, v in changed.items()}))


def status(reward: Reward) -> dict[str, str]:
    return {t.id.partition("::")[2]: t.status for t in reward.tests}


def test_values_of_every_shape_cross(verifier: Verifier, task: Task) -> None:
    reward = judge(verifier, task)
    assert reward.value == 1.0 and not reward.evidence, reward
    assert len(reward.tests) == 13 and reward.mode == "split"


def test_equal_to_anything_is_no_value(verifier: Verifier, task: Task) -> None:
    evil = (
        LIBRARY
        + "\nclass E(int):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef total(*a, **k): return E()\n"
    )
    reward = judge(verifier, task, lib=evil)
    assert reward.value == 0.0 and status(reward)["test_arguments"] == "failed"
    assert "does not cross" in next(t.detail for t in reward.tests if t.id.endswith("test_arguments"))


def test_a_crash_fails_its_test_and_the_next_goes_on(verifier: Verifier, task: Task) -> None:
    reward = judge(verifier, task, lib=LIBRARY + "\ndef total(*a, **k): import os; os._exit(0)\n")
    found = status(reward)
    assert found.pop("test_arguments") == "failed" and set(found.values()) == {"passed"}, reward
    assert reward.value == 0.0 and reward.fraction == pytest.approx(12 / 13)


def test_cpu_time_is_measured_outside_and_bounded(verifier: Verifier, make_task: Any) -> None:
    tests = {"test_a.py": TEST_F["test_a.py"] + "def test_g(): assert f() == 1\n"}
    task = make_task({"a.py": ""}, tests, {"a.py": ONE}, mode="split", modules=("a",), cpu_seconds=0.5)
    spin = "import time\ntime.process_time = time.perf_counter = lambda: 0.0\ndef f():\n    while True: pass\n"
    reward = verifier.verify(task, Diff(changed={"a.py": spin.encode()}))
    assert reward.value == 0.0 and reward.verdict is Verdict.TIMEOUT
    assert "timeout" in status(reward).values()


def test_sleeping_past_the_deadline_is_a_timeout(verifier: Verifier, make_task: Any) -> None:
    tests = {"test_a.py": "from a import f\ndef test_f(): assert f() == 1\n"}
    task = make_task(
        {"a.py": ""}, tests, {"a.py": "def f(): return 1\n"}, mode="split", modules=("a",), wall_seconds=4.0
    )
    reward = verifier.verify(task, Diff(changed={"a.py": b"import time\ndef f(): time.sleep(60)\n"}))
    assert reward.value == 0.0 and reward.verdict is Verdict.TIMEOUT and reward.seconds < 30


def test_memory_is_bounded(verifier: Verifier, make_task: Any) -> None:
    task = make_task({"a.py": ""}, TEST_F, {"a.py": ONE}, mode="split", modules=("a",), limits=Limits(memory_mb=128))
    hog = b"def f():\n    x = [bytearray(b'x' * (1 << 26)) for _ in range(64)]\n    return 1\n"
    reward = verifier.verify(task, Diff(changed={"a.py": hog}))
    assert reward.value == 0.0 and reward.verdict in (Verdict.FAILED, Verdict.TIMEOUT)


def test_time_that_values_need_to_travel_does_not_count(verifier: Verifier, make_task: Any) -> None:
    tests = (
        "import time\nfrom a import f\ndef test_f():\n    t = time.perf_counter()\n    for n in range(500): f([n])\n"
    )
    tests += "    assert time.perf_counter() - t < 0.4\n"
    task = make_task({"a.py": ""}, {"test_a.py": tests}, {"a.py": "def f(x): return x\n"}, mode="split", modules=("a",))
    assert verifier.verify(task, Diff(changed={"a.py": b"def f(x): return x\n"})).value == 1.0
    slow = b"import time\ndef f(x):\n    e = time.process_time() + 0.003\n    while time.process_time() < e: pass\n"
    slow += b"    return x\n"
    assert verifier.verify(task, Diff(changed={"a.py": slow})).value == 0.0
