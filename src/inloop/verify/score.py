"""The reward, computed by the host from the exact expected set of test ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inloop.types import Reward, TestOutcome, Verdict
from inloop.verify.halves import Half, Key, key_of
from inloop.verify.record import Run, Status, Test

WORST: tuple[Status, ...] = ("timeout", "missing", "error", "skipped", "failed", "passed")
SHOWN = 10


@dataclass(slots=True)
class Tally:
    """Real tests and twins of all halves, sorted apart."""

    real: dict[str, list[Test]] = field(default_factory=dict)
    twins: dict[Key, list[Test]] = field(default_factory=dict)
    """In the order of collection, one entry a parameter set."""
    counterparts: dict[Key, list[Test]] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)


def tally(expected: Sequence[str], halves: Sequence[Half], runs: Sequence[Run]) -> Tally:
    out = Tally()
    wanted = set(expected)
    for half, run in zip(halves, runs, strict=True):
        for test_id in run.collected or list(run.tests):
            test = run.tests.get(test_id, Test())
            key = key_of(test_id)
            if key in half.twins:
                out.twins.setdefault(key, []).append(test)
                continue
            out.real.setdefault(test_id, []).append(test)
            out.counterparts.setdefault(key, []).append(test)
            if test_id not in wanted and test_id not in out.extra:
                out.extra.append(test_id)
        out.extra += [i for i in run.tests if run.collected and i not in set(run.collected)]
    return out


def reward(
    expected: Sequence[str], halves: Sequence[Half], runs: Sequence[Run], *, mode: str, timed_out: bool
) -> Reward:
    """All expected ids passed, nothing else reported, every twin failed: 1. Anything less: 0."""
    found = tally(expected, halves, runs)
    outcomes = tuple(_outcome(test_id, found.real.get(test_id, [])) for test_id in expected)
    passed = sum(o.status == "passed" for o in outcomes)
    evidence = _evidence(found, runs)
    cheats = sorted(f"{file}::{name}" for (file, name), twins in found.twins.items() if _contradiction(
        twins, found.counterparts.get((file, name), [])))  # fmt: skip
    forged = sum(run.forged for run in runs)
    clean = not (evidence or found.extra) and all(run.ended for run in runs) and not timed_out
    if cheats or forged:
        verdict = Verdict.CHEAT
        evidence = [f"{name}: passed, and so did its twin, which asks for a wrong answer" for name in cheats] + evidence
    elif passed == len(expected) and clean:
        verdict = Verdict.PASSED
    else:
        late = timed_out or any(o.status == "timeout" for o in outcomes)
        verdict = Verdict.TIMEOUT if late else Verdict.FAILED
    if timed_out:
        evidence.append("the time for the whole verification was up")
    return Reward(
        value=1.0 if verdict is Verdict.PASSED else 0.0,
        verdict=verdict,
        fraction=0.0 if verdict is Verdict.CHEAT else passed / len(expected),
        tests=outcomes,
        evidence=tuple(evidence),
        mode=mode,
    )


def _outcome(test_id: str, copies: list[Test]) -> TestOutcome:
    """A test without twin runs in both halves; the worse result counts."""
    if not copies:
        return TestOutcome(id=test_id, status="missing", detail="not reported")
    worst = min(copies, key=lambda t: WORST.index(t.status()))
    cpu = max(t.cpu for t in copies)
    return TestOutcome(id=test_id, status=worst.status(), cpu_seconds=round(cpu, 4), detail=worst.detail)


def _contradiction(twins: list[Test], real: list[Test]) -> bool:
    """Passed both a test and its twin: what the one asks for is wrong by the other."""
    if len(twins) == len(real):
        return any(t.status() == r.status() == "passed" for t, r in zip(twins, real, strict=True))
    return any(t.status() == "passed" for t in twins) and any(r.status() == "passed" for r in real)


def _evidence(found: Tally, runs: Sequence[Run]) -> list[str]:
    """Everything that is not in order, whatever the tests said."""
    out = [f"{name}: reported, but not expected" for name in found.extra[:SHOWN]]
    for (file, name), twins in sorted(found.twins.items()):
        odd = {t.status() for t in twins} - {"failed", "error"}
        if odd:
            out.append(f"{file}::{name}: its twin {' and '.join(sorted(odd))}, where it had to fail")
    for run in runs:
        out += [f"{file}: {_last_line(why)}" for file, why in run.broken[:SHOWN]]
        if run.crash:
            out.append(f"the run stopped: {run.crash}")
        if run.forged:
            out.append(f"{run.forged} messages on the private channel that the runner did not write")
        if run.odd:
            out.append(f"{run.odd} reports that make no sense")
        if run.died or not run.ended:
            out.append("a test process ended before its tests were done")
        if len(set(run.collected)) != len(run.collected):
            out.append("a test was reported twice")
    return list(dict.fromkeys(out))


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "could not be imported"
