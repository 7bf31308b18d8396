"""Which task is made of which function, in which split, broken how: all of it follows from the seed."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from inloop.build.starter.breaks import Break, breaks
from inloop.build.starter.library import Entry
from inloop.errors import TaskError

HELD_OUT_EVERY = 3
"""Of the functions, one in so many is held out, whatever the seed."""
SALT = "b"
"""Of the hash that decides it; this one spreads them over the areas."""
MIX: Mapping[str, float] = {
    "misspelling": 0.40, "operator": 0.13, "comparison": 0.10, "boundary": 0.07, "constant": 0.07, "condition": 0.08,
    "return": 0.03, "arguments": 0.02, "method": 0.05, "variable": 0.03, "removed": 0.02,
}  # fmt: skip
"""Shares of the kinds in every split."""


@dataclass(frozen=True)
class Choice:
    entry: Entry
    change: Break
    split: str
    seed: int
    """Of the names, and of which cases are visible."""


def split_of(entries: Sequence[Entry]) -> dict[str, str]:
    """Unit -> 'train' or 'test'. It depends on the unit's name alone: neither a seed nor a new function moves it."""
    return {entry.unit: "test" if _number(entry.unit) % HELD_OUT_EVERY == 0 else "train" for entry in entries}


def _number(unit: str) -> int:
    return int(hashlib.sha256(f"{SALT}{unit}".encode()).hexdigest()[:8], 16)


@dataclass
class Plan:
    """Deals choices for one split: every function before any function again, every bug before any bug again."""

    entries: Sequence[Entry]
    split: str
    rng: random.Random
    mix: Mapping[str, float] = field(default_factory=lambda: MIX)

    def __post_init__(self) -> None:
        self._of_kind: dict[str, list[tuple[Entry, list[Break]]]] = {}
        for kind in self.mix:
            found = ((e, [b for b in breaks(e) if b.kind == kind]) for e in self.entries)
            self._of_kind[kind] = [(e, changes) for e, changes in found if changes]
        self._used: Counter[str] = Counter()
        self._used_breaks: Counter[tuple[str, str]] = Counter()
        if not any(self._of_kind[k] for k, share in self.mix.items() if share > 0):
            raise TaskError(f"no function of the split '{self.split}' can be broken in the kinds asked for")

    def deal(self, n: int) -> list[Choice]:
        kinds = self._kinds(n)
        self.rng.shuffle(kinds)
        return [self._choose(kind) for kind in kinds]

    def _kinds(self, n: int) -> list[str]:
        """`n` kinds in the shares of the mix, by largest remainder, over the kinds that can be had."""
        shares = {k: s for k, s in self.mix.items() if s > 0 and self._of_kind[k]}
        total = sum(shares.values())
        exact = {k: n * s / total for k, s in shares.items()}
        counts = {k: int(x) for k, x in exact.items()}
        by_rest = sorted(exact, key=lambda k: counts[k] - exact[k])
        for kind in by_rest[: n - sum(counts.values())]:
            counts[kind] += 1
        return [k for k, count in counts.items() for _ in range(count)]

    def _choose(self, kind: str) -> Choice:
        entry, changes = min(self._of_kind[kind], key=lambda x: (self._used[x[0].unit], self.rng.random()))
        change = min(changes, key=lambda b: (self._used_breaks[entry.unit, b.source], self.rng.random()))
        self._used[entry.unit] += 1
        self._used_breaks[entry.unit, change.source] += 1
        return Choice(entry, change, self.split, self.rng.getrandbits(32))


def check_mix(mix: Mapping[str, float], kinds: Iterable[str]) -> None:
    """Raises TaskError for a kind that there is not, or for shares that are none."""
    known = list(kinds)
    for kind, share in mix.items():
        if kind not in known:
            raise TaskError(f"unknown kind of bug '{kind}'", fix=f"known: {', '.join(known)}")
        if share < 0:
            raise TaskError(f"the share of '{kind}' is {share}", fix="give a number of at least 0")
    if not any(mix.values()):
        raise TaskError("every kind of bug has the share 0", fix="give at least one kind a share")
