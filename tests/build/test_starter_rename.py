"""Other names, the same function."""

from __future__ import annotations

import random

import pytest

from inloop.build.starter.library import Entry, entries
from inloop.build.starter.names import FAMILIES
from inloop.build.starter.rename import TAKEN, bound_names, choose, rename
from inloop.build.starter.trial import attempt_all

SOURCE = '''\
def join(words, sep="-"):
    """Join words with a sep."""
    out = sorted(words, key=len)
    words.sep = {"words": out}
    return f"{words}{sep!r} words {out:>3}" + sep.join(words=out)
'''


def test_names_change_and_nothing_else() -> None:
    renamed = rename(SOURCE, {"words": "terms", "sep": "mark", "out": "result", "len": "length"})
    assert (
        renamed
        == '''\
def join(terms, mark="-"):
    """Join words with a sep."""
    result = sorted(terms, key=length)
    terms.sep = {"words": result}
    return f"{terms}{mark!r} words {result:>3}" + mark.join(words=result)
'''
    )


def test_a_source_that_lacks_a_name_keeps_the_rest() -> None:
    assert rename("def f(a):\n    return aa + a\n", {"a": "x", "aa": "xx"}) == "def f(x):\n    return xx + x\n"


def test_bound_names_come_in_order() -> None:
    assert bound_names("def f(b, a):\n    for c in b:\n        d = c\n    return d\n") == ["f", "b", "a", "c", "d"]


@pytest.mark.parametrize("entry", entries()[::12], ids=lambda e: e.unit)
def test_a_renamed_function_does_the_same(entry: Entry) -> None:
    rng = random.Random(entry.unit)
    before = attempt_all(entry.source, entry.name, entry.cases)
    variants = set()
    for _ in range(12):
        names = choose(entry.source, entry.name, rng)
        assert len(set(names.values())) == len(names) and not set(names.values()) & TAKEN
        source = rename(entry.source, names)
        variants.add(source)
        assert attempt_all(source, names.get(entry.name, entry.name), entry.cases) == before
    assert len(variants) >= 4


def test_most_names_have_a_family() -> None:
    names = [n for e in entries() for n in bound_names(e.source) if n != e.name]
    assert sum(n in FAMILIES for n in names) / len(names) > 0.9


def test_the_choice_follows_from_the_seed() -> None:
    entry = entries()[3]
    assert [choose(entry.source, entry.name, random.Random(s)) for s in (1, 2, 1)][::2] == [
        choose(entry.source, entry.name, random.Random(1))
    ] * 2
