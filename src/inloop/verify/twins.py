"""Canary twins of a task: which mutated hidden tests are known to fail on the solution.

    tests/twins.json   {"version": 1, "seeds": {"<seed>": {"digest": ..., "tests": [...]}}, "dropped": {test: why}}

A twin is made anew from its seed; the digest says that it is still the very text that was checked."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from inloop.errors import TaskError
from inloop.files import write_json
from inloop.tasks.task import Task
from inloop.verify.halves import Half, Key, half, pieces, twinned
from inloop.verify.record import Run
from inloop.verify.score import tally

VERSION = 1
VARIANTS = 4
"""Sets of twins a task; a verification uses one of them, cut over two halves at random."""


@dataclass(frozen=True, slots=True)
class Twins:
    usable: dict[int, frozenset[Key]]
    """Seed -> tests whose twin fails on the solution."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Test -> why it has no usable twin by any seed."""

    def pick(self) -> tuple[int, frozenset[Key]]:
        """One variant at random; (0, nothing) when there is none."""
        seeds = [s for s, keys in self.usable.items() if keys]
        seed = random.SystemRandom().choice(seeds) if seeds else 0
        return seed, self.usable.get(seed, frozenset())

    @property
    def count(self) -> int:
        return len(frozenset().union(*self.usable.values())) if self.usable else 0


NONE = Twins({})


def check(
    sources: dict[str, str],
    expected: tuple[str, ...],
    run: Callable[[list[Half]], list[Run]],
    variants: int = VARIANTS,
) -> Twins:
    """Try the twins of fresh seeds on the solution; `run` runs halves on it. Those that don't fail are dropped."""
    seeds = [random.SystemRandom().randrange(1, 1 << 48) for _ in range(variants)]
    halves = [half(sources, seed, twinned(sources, seed)) for seed in seeds]
    usable: dict[int, frozenset[Key]] = {}
    dropped: dict[str, str] = {}
    for seed, tried, result in zip(seeds, halves, run(halves), strict=True):
        found = tally(expected, [tried], [result]).twins
        failing = {k for k, tests in found.items() if all(t.status() in ("failed", "error") for t in tests)}
        usable[seed] = frozenset(failing)
        dropped |= {_name(k): "its twin does not fail on the solution" for k in tried.twins - failing}
    twin_of_some = frozenset().union(*usable.values())
    for file, source in sources.items():
        for piece in pieces(source, seeds[0]):
            if piece.name and not piece.twin:
                dropped[_name((file, piece.name))] = "asserts nothing that can be asked differently"
    return Twins(usable, {n: w for n, w in dropped.items() if n not in {_name(k) for k in twin_of_some}})


def _name(key: Key) -> str:
    return "::".join(key)


def digest(sources: dict[str, str], seed: int) -> str:
    text = repr([(f, p.name, p.text, p.twin) for f, s in sorted(sources.items()) for p in pieces(s, seed)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def save(task: Task, twins: Twins, sources: dict[str, str]) -> None:
    seeds = {
        str(seed): {"digest": digest(sources, seed), "tests": sorted(_name(k) for k in keys)}
        for seed, keys in twins.usable.items()
    }
    write_json(task.tests / "twins.json", {"version": VERSION, "seeds": seeds, "dropped": twins.dropped})


def load(task: Task, sources: dict[str, str]) -> Twins | None:
    """None when none were made, or when they are not the ones that were checked. Raises TaskError when malformed."""
    path = task.tests / "twins.json"
    if not path.is_file():
        return None
    try:
        data = json.loads(path.read_bytes())
        if data["version"] != VERSION:
            return None
        usable = {
            int(seed): frozenset((n.partition("::")[0], n.partition("::")[2]) for n in about["tests"])
            for seed, about in data["seeds"].items()
            if about["digest"] == digest(sources, int(seed))
        }
        dropped = dict(data["dropped"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TaskError(f"{path}: not a list of twins ({error})", fix="remove it; the audit makes it again") from None
    return Twins(usable, dropped) if usable else None
