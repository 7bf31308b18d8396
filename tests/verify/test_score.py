"""Only the exact expected set, each passed in order, is paid; contradictions are cheats; nonsense is counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inloop.types import Reward, Verdict
from inloop.verify.halves import Half
from inloop.verify.record import Run, clean
from inloop.verify.score import reward

IDS = ("t.py::a", "t.py::b[1]", "t.py::b[2]")
FINE = (("setup", "passed"), ("call", "passed"), ("teardown", "passed"))
FAIL = (("setup", "passed"), ("call", "failed"), ("teardown", "passed"))


def run(tests: dict[str, Any], *, end: bool = True, collected: list[str] | None = None) -> Run:
    told = Run()
    told.take(["collected", list(tests) if collected is None else collected])
    for test_id, steps in tests.items():
        told.take(["start", test_id])
        for step, outcome in steps:
            told.take(["step", test_id, step, outcome.removeprefix("x"), outcome.startswith("x"), ""])
        told.take(["finish", test_id, 0.1, False])
    if end:
        told.take(["end"])
    return told


def judge(one: Run, two: Run | None = None, twins: tuple[str, ...] = (), *, timed_out: bool = False) -> Reward:
    """Half one is all real; in half two the tests named in `twins` are twins."""
    halves = [Half({}), Half({}, frozenset(("t.py", t) for t in twins))]
    runs = [one] if two is None else [one, two]
    return reward(IDS, halves[: len(runs)], runs, mode="forked", timed_out=timed_out)


GOOD = dict.fromkeys(IDS, FINE)


def test_all_expected_passed_is_paid() -> None:
    found = judge(run(GOOD))
    assert (found.value, found.fraction, found.verdict, found.evidence) == (1.0, 1.0, Verdict.PASSED, ())
    assert judge(run(GOOD), run(dict.fromkeys(IDS, FAIL)), ("a", "b")).value == 1.0


@pytest.mark.parametrize(
    "steps, status",
    [
        (FAIL, "failed"),
        ((("setup", "passed"), ("call", "skipped"), ("teardown", "passed")), "skipped"),
        ((("setup", "skipped"), ("teardown", "passed")), "skipped"),
        ((("setup", "passed"), ("call", "xpassed"), ("teardown", "passed")), "skipped"),
        ((("setup", "failed"), ("teardown", "passed")), "error"),
        ((("setup", "passed"), ("call", "passed"), ("teardown", "failed")), "error"),
        ((("setup", "passed"), ("call", "passed")), "missing"),
        ((("call", "passed"),), "missing"),
        ((*FINE, *FINE), "missing"),
        ((("setup", "passed"), ("sub", "failed"), ("call", "passed"), ("teardown", "passed")), "failed"),
        ((), "missing"),
    ],
)
def test_anything_but_three_passed_steps_is_no_pass(steps: Any, status: str) -> None:
    found = judge(run(GOOD | {IDS[0]: steps}))
    assert found.value == 0.0 and found.tests[0].status == status and found.fraction == pytest.approx(2 / 3)


def test_missing_extra_repeated_and_early_exit_are_not_paid() -> None:
    assert judge(run({k: GOOD[k] for k in IDS[:2]})).value == 0.0
    assert judge(run(GOOD | {"t.py::more": FINE})).value == 0.0
    assert judge(run(GOOD, end=False)).value == 0.0
    assert judge(run(GOOD), timed_out=True).verdict is Verdict.TIMEOUT
    twice = run(GOOD)
    twice.take(["start", IDS[0]])
    assert judge(twice).value == 0.0
    assert judge(run(GOOD, collected=[*IDS, IDS[0]])).value == 0.0


def test_a_test_and_its_twin_both_passed_is_a_cheat() -> None:
    found = judge(run(GOOD), run({IDS[0]: FINE}), ("a",))
    assert (found.value, found.fraction, found.verdict) == (0.0, 0.0, Verdict.CHEAT) and "t.py::a" in found.evidence[0]


def test_parameter_sets_are_matched_by_order() -> None:
    """A wrong value that happens to be what the twin asks for is a mistake, not a cheat."""
    real = run(GOOD | {IDS[1]: FAIL})
    wrong_but_lucky = run({"t.py::b[91]": FINE, "t.py::b[92]": FAIL})
    found = judge(real, wrong_but_lucky, ("b",))
    assert found.verdict is Verdict.FAILED and found.value == 0.0
    assert judge(run(GOOD), run({"t.py::b[91]": FAIL, "t.py::b[92]": FINE}), ("b",)).verdict is Verdict.CHEAT


@pytest.mark.parametrize("steps", [(), (("setup", "skipped"), ("teardown", "passed"))])
def test_a_twin_that_does_not_fail_is_not_paid(steps: Any) -> None:
    found = judge(run(GOOD), run({IDS[0]: steps}), ("a",))
    assert found.value == 0.0 and found.verdict is Verdict.FAILED and "its twin" in found.evidence[0]


def test_forged_messages_are_a_cheat() -> None:
    told = run(GOOD)
    told.take(["forged", 3])
    assert judge(told).verdict is Verdict.CHEAT


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(IDS),
    lambda v: st.lists(v, max_size=5) | st.dictionaries(st.text(max_size=3), v, max_size=2),
)
KINDS = st.sampled_from(["collected", "start", "step", "finish", "broken", "crash", "died", "end", "left", "__init__"])


@given(
    st.lists(st.one_of(JUNK, st.tuples(KINDS, JUNK, JUNK).map(list), st.tuples(KINDS, st.sampled_from(IDS)).map(list)))
)
@settings(max_examples=100, deadline=None)
def test_nonsense_never_raises_and_never_pays(messages: list[Any]) -> None:
    told = Run()
    for message in messages:
        told.take(message)
    assert judge(told).value == 0.0


def test_text_for_terminals_is_clean() -> None:
    assert clean("\x1b[31mred\x07\u202e\nok") == "?[31mred??\nok" and len(clean("x" * 10_000)) <= 2000
