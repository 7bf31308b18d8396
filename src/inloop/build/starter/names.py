"""Which names may stand for each other: a family is a list of names that a reader would take for the same thing."""

from __future__ import annotations

_FAMILIES = """
text string source content phrase message raw
word token term chunk
words tokens terms chunks
letter char symbol mark
letters chars symbols
title heading label caption
name label title
names labels titles
line row record
lines rows records
items values elements entries data things
item value element entry thing
numbers values amounts figures samples
number value amount figure
first left a one
second right b other
left start low lo
right end high hi
out result found answer collected
total result acc running
count tally hits times
index position place spot
limit maximum bound cap
width size span
shift offset step
prefix head lead
shown visible kept
kept rest remaining
hidden covered missing
pieces parts segments
piece part segment
current buffer pending
distance gap difference
base origin anchor
wanted target sought
marks separators delimiters
rest others remaining
part segment bit
"""

FAMILIES: dict[str, tuple[str, ...]] = {}
for _line in _FAMILIES.strip().splitlines():
    for _name in _line.split():
        FAMILIES[_name] = tuple(dict.fromkeys([*FAMILIES.get(_name, ()), *(n for n in _line.split() if n != _name)]))

VERBS: dict[str, tuple[str, ...]] = {
    "count": ("get", "number_of", "tally"),
    "is": ("check", "test"),
    "find": ("get", "locate", "search"),
    "parse": ("read", "decode"),
    "format": ("show", "render", "write"),
    "split": ("cut", "divide"),
    "merge": ("join", "combine", "unite"),
    "to": ("as", "into"),
    "remove": ("drop", "delete", "strip"),
    "make": ("build", "create"),
    "get": ("find", "fetch"),
    "sum": ("total", "add"),
    "group": ("sort", "collect"),
}
