import pytest

from pocket import shorten, spans

LONG = "the quick brown fox"


@pytest.mark.parametrize(("width", "cut"), [(19, LONG), (10, "the qui..."), (7, "the..."), (3, "...")])
def test_shorten(width, cut):
    assert shorten(LONG, width) == cut


def test_shorten_exact_fit():
    assert shorten("abcd", 4) == "abcd"


def test_shorten_other_mark():
    assert shorten("abcdefgh", 5, "~") == "abcd~"


def test_shorten_too_narrow():
    with pytest.raises(ValueError):
        shorten(LONG, 2)


def test_spans():
    assert spans("banana", "ana") == [(1, 4), (3, 6)]


def test_spans_at_start():
    assert spans("aab", "a") == [(0, 1), (1, 2)]


def test_spans_none():
    assert spans("banana", "x") == []
    assert spans("banana", "") == []
