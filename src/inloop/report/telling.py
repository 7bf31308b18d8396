"""Ten rollouts that say most: fixed by training, broken by it, suspects of an exploit, and what fills the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from inloop.errors import DataError
from inloop.evaluate.compare import Pair
from inloop.report.ledger import Entry, Ledger
from inloop.report.scan import Run
from inloop.trace.trajectory import Trajectory

Ends = tuple[str, str, Pair]
"""Folders of the first and the last checkpoint, and how they compare."""

COUNT = 10
SHARE = {"fixed by training": 4, "broken by training": 3, "exploit suspect": 3}
"""How many of each at most, while there are others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    why: str
    note: str
    """In words: what makes it telling."""
    folder: str
    """Whose ledger holds it."""
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class Pick:
    why: str
    note: str
    folder: str
    id: str


def choose(run: Run, ledgers: dict[str, Ledger], ends: Ends | None) -> list[Telling]:
    picks: list[Pick] = []
    if ends:
        picks += moved(run, *ends)
    picks += suspects(run, ledgers)
    kept: list[Pick] = []
    for why, most in SHARE.items():
        kept += [p for p in picks if p.why == why][:most]
    seen = {(p.folder, p.id) for p in kept}
    for pick in [*others(run, ledgers), *picks]:
        if len(kept) < COUNT and (pick.folder, pick.id) not in seen:
            kept.append(pick)
            seen.add((pick.folder, pick.id))
    return list(_load(kept[:COUNT], ledgers))


def _load(picks: Iterable[Pick], ledgers: dict[str, Ledger]) -> Iterator[Telling]:
    for pick in picks:
        try:
            trajectory = ledgers[pick.folder].load(pick.id)
        except (KeyError, DataError):
            continue  # results.json without its ledger: the rates stand, there is nothing to show
        yield Telling(why=pick.why, note=pick.note, folder=pick.folder, trajectory=trajectory)


def moved(run: Run, first: str, last: str, pair: Pair) -> Iterator[Pick]:
    """Of each task that moved, the rollout of the last checkpoint that shows it."""
    before, after = run.evaluations[first].by_task(), run.evaluations[last].by_task()
    for why, tasks, outcome in (("fixed by training", pair.fixed, True), ("broken by training", pair.broken, False)):
        for task in tasks:
            a, b = before[task], after[task]
            if outcome in b.outcomes:
                note = f"{pair.a} passed {a.passed} of {a.scored}, {pair.b} {b.passed} of {b.scored}"
                yield Pick(why, note, last, b.rollouts[b.outcomes.index(outcome)])


def suspects(run: Run, ledgers: dict[str, Ledger]) -> Iterator[Pick]:
    """What a canary twin or the checker caught, and decoys that were solved."""
    for folder, ledger in ledgers.items():
        for entry in ledger.entries:
            if entry.verdict == "cheat":
                yield Pick("exploit suspect", "the verifier flagged it as a cheat", folder, entry.id)
    for training in run.trainings:
        decoys = {e.get("task") for e in training.events if e.get("event") == "group" and e.get("canary")}
        numbers = {f"g{e['number']:05d}" for e in training.events if _is_decoy(e)}
        for entry in ledgers[training.name].entries if training.name in ledgers and decoys else ():
            if entry.passed and entry.group in numbers:
                yield Pick("exploit suspect", "it went through the hole of a decoy", training.name, entry.id)


def _is_decoy(event: dict[str, Any]) -> bool:
    return event.get("event") == "group" and bool(event.get("canary")) and isinstance(event.get("number"), int)


def others(run: Run, ledgers: dict[str, Ledger]) -> Iterator[Pick]:
    """Of the last checkpoint first: recoveries, near misses, the quickest passes, the longest failures."""
    order = [f for f in dict.fromkeys([*reversed(run.evaluations), *ledgers]) if f in ledgers]
    entries = [(folder, e) for folder in order for e in ledgers[folder].entries]
    passed = [(f, e) for f, e in entries if e.passed]
    failed = [(f, e) for f, e in entries if e.value is not None and not e.passed]
    tables = (
        ("recovered", "passed after a failing test run", [x for x in passed if x[1].failing_tests]),
        ("near miss", "most of its hidden tests pass", sorted(failed, key=lambda x: -(x[1].fraction or 0))),
        ("quick pass", "fewest turns of those that passed", sorted(passed, key=lambda x: x[1].turns)),
        ("long failure", "most turns of those that failed", sorted(failed, key=lambda x: -x[1].turns)),
        ("no score", "nothing could be measured", [x for x in entries if x[1].value is None]),
    )
    for place in range(COUNT):
        for why, note, rows in tables:
            if place < len(rows):
                yield Pick(why, note, *_place(rows[place]))


def _place(row: tuple[str, Entry]) -> tuple[str, str]:
    return row[0], row[1].id
