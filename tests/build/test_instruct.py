"""What the agent is told: the failing statement, what it needs, what came out; no addresses, no paths."""

from __future__ import annotations

import random

from inloop.build.instruct import bug_report, clip
from inloop.build.suite import TestRun
from inloop.build.testsplit import TestFile

SOURCE = b"""\
import pytest


@pytest.mark.parametrize(("given", "wanted"), [(1, 2)])
def test_one(given, wanted):
    unused = 5
    base = given * 2
    shown = base + 1
    assert shown == wanted
"""


def test_a_report_has_all_that_the_statement_needs() -> None:
    run = TestRun(id="t.py::test_one[1-2]", outcome="failed", exception="AssertionError", line=9,
                  message="assert 3 == 2", params=("given = 1", "wanted = 2"))  # fmt: skip
    text = bug_report(run, TestFile("t.py", SOURCE), random.Random(1))
    for line in (
        "# test_one",
        "given * 2",
        "shown = base + 1",
        "assert shown == wanted",
        "wanted = 2",
        "assert 3 == 2",
    ):
        assert line in text
    assert "unused" not in text and text == bug_report(run, TestFile("t.py", SOURCE), random.Random(1))


def test_a_failure_without_a_line_is_told_by_its_name() -> None:
    run = TestRun(id="t.py::test_one[1-2]", outcome="error", exception="ImportError")
    assert "`test_one` of `t.py`" in bug_report(run, TestFile("t.py", SOURCE), random.Random(1))


def test_messages_are_cleaned_and_cut() -> None:
    text = clip(
        "name 'lne' is not defined. Did you mean: 'len'?\n<f at 0x7f0011223344> File \"/workspace/a/b.py\", line 3"
    )
    assert "len" not in text and "0x7f" not in text and "b.py" not in text
    assert clip("\n".join(map(str, range(100)))).endswith("11\n...")
