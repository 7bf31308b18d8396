"""Test files divided: each half parses, and together they hold every test."""

from __future__ import annotations

from inloop.build.testsplit import TestFile, function_of

SOURCE = '''\
import unittest

import pytest


class Base(unittest.TestCase):
    """Doc."""

    def test_one(self):
        assert 1

    def test_two(self):
        assert 2


class Heir(Base):
    def test_three(self):
        assert 3


class Alone:
    @pytest.mark.parametrize("x", [1, 2])
    def test_four(self, x):
        # a comment
        assert x


def helper():
    return 5


@pytest.mark.skipif(False, reason="no")
def test_five():
    for x in range(2):
        assert helper() == 5
'''


def test_halves() -> None:
    file = TestFile("t.py", SOURCE.encode())
    names = ["Base::test_one", "Base::test_two", "Heir::test_three", "Alone::test_four", "test_five"]
    assert list(file.functions) == names
    for hidden in (
        {"Alone::test_four"},
        {"Base::test_one", "Base::test_two"},
        {"Heir::test_three"},
        {"test_five"},
        set(names),
    ):
        visible, kept = TestFile("t.py", file.without(hidden)), TestFile("t.py", file.only(hidden))
        assert set(visible.functions) == set(names) - hidden and set(kept.functions) == hidden
        assert b"def helper" in visible.module.data and b"def helper" in kept.module.data
    gone = file.without({"Alone::test_four"})
    assert b"class Alone" not in gone and b"parametrize" not in gone


def test_classes_that_inherit_stay() -> None:
    file = TestFile("t.py", SOURCE.encode())
    assert file.inherited("Base::test_one") == ["Heir::test_one"] and file.inherited("test_five") == []
    only = file.only({"Base::test_one"})
    assert b"class Heir(Base):\n    pass\n" in only
    none = file.without({"Base::test_one", "Base::test_two"})
    assert b'class Base(unittest.TestCase):\n    """Doc."""\n\n    pass\n' in none


def test_statements_and_ids() -> None:
    file = TestFile("t.py", SOURCE.encode())
    line = SOURCE.splitlines().index("        assert helper() == 5") + 1
    assert file.statement(line) == "assert helper() == 5"
    assert file.statement(2) == "" and file.statement(10_000) == ""
    assert function_of("a/t.py::C::test_x[a::b-[1]]") == "a/t.py::C::test_x"
