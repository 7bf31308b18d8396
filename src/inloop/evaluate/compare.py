"""Better, worse, or can't tell: two checkpoints paired over the tasks that both were scored on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from inloop.errors import DataError
from inloop.evaluate.results import Results, same_ground
from inloop.evaluate.score import TaskScore
from inloop.stats import Comparison, compare

Scores = dict[str, TaskScore]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    a: str
    b: str
    comparison: Comparison
    left_out: int
    """Tasks that only one of them has a score for."""
    fixed: tuple[str, ...]
    """Tasks that b passes more often, most first."""
    broken: tuple[str, ...]
    more_samples: int | None
    """Samples a task at which this effect would be decided on these tasks; None when more samples can't do it."""
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_pair(a: Results, b: Results) -> Pair:
    """Is b better than a? Raises DataError where there is nothing to compare."""
    same_ground([a, b])
    left, right = a.by_task(), b.by_task()
    shared = [t for t in left if t in right]
    if not shared:
        raise DataError(
            f"{a.name} and {b.name} have no scored task in common",
            fix="look at the faults in results.json; run `inloop eval` again, it only fills what is missing",
        )
    x, y = [left[t].rate for t in shared], [right[t].rate for t in shared]
    result = compare(x, y)
    moved = sorted(zip(shared, x, y, strict=True), key=lambda row: row[2] - row[1])
    return Pair(
        a=a.name,
        b=b.name,
        comparison=result,
        left_out=len(set(left) ^ set(right)),
        fixed=tuple(t for t, p, q in reversed(moved) if q > p),
        broken=tuple(t for t, p, q in moved if q < p),
        more_samples=0 if result.more_tasks == 0 else _more_samples(left, right, shared, result),
        warnings=_warnings(a, b),
    )


def compare_all(results: Sequence[Results]) -> list[Pair]:
    """Each with the one before it, then the last with the first."""
    pairs = [compare_pair(a, b) for a, b in itertools.pairwise(results)]
    return pairs + ([compare_pair(results[0], results[-1])] if len(results) > 2 else [])


def _more_samples(left: Scores, right: Scores, shared: Sequence[str], result: Comparison) -> int | None:
    """More samples shrink only the noise within tasks; what the tasks themselves disagree on stays."""
    if not result.more_tasks or len(shared) < 2:
        return None
    count, effect = len(shared), result.effect
    differences = [right[t].rate - left[t].rate for t in shared]
    total = sum((d - effect) ** 2 for d in differences) / (count - 1)
    samples = min(min(left[t].scored, right[t].scored) for t in shared)
    if samples < 2:
        return None
    within = sum(_noise(left[t]) + _noise(right[t]) for t in shared) / count
    between = max(total - within, 0.0)
    allowed = total * count / (count + result.more_tasks)
    if allowed <= between:
        return None
    return max(samples + 1, round(within * samples / (allowed - between)))


def _noise(row: TaskScore) -> float:
    """Variance of the task's pass rate that comes from sampling alone; unbiased from two samples on."""
    return row.rate * (1 - row.rate) / (row.scored - 1) if row.scored > 1 else 0.0


def _warnings(a: Results, b: Results) -> tuple[str, ...]:
    out = []
    if a.harness.get("hash") != b.harness.get("hash"):
        out.append("the harness differs: the effect is of checkpoint and harness together")
    if a.sampling.get("temperature") != b.sampling.get("temperature"):
        out.append("the sampling temperature differs")
    for r in (a, b):
        faults = sum(r.summary.get("faults", {}).values())
        if faults > 0.1 * max(r.summary.get("samples", 0), 1):
            out.append(f"{r.name}: {faults} samples met faults; its rates rest on the others")
    return tuple(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What promotes a checkpoint."""

    promoted: bool
    reasons: tuple[str, ...]


def gate(pair: Pair, *, margin: float = 0.0, retention: Pair | None = None, allowed_loss: float = 0.02) -> Gate:
    """b is promoted when it is better by at least `margin` and does not lose on what it could do before.

    Retention fails when the old skills got worse, or when a loss above `allowed_loss` can't be excluded."""
    reasons = []
    result = pair.comparison
    if result.verdict != "better":
        reasons.append(f"not better: {result.verdict} ({100 * result.effect:+.1f} points, p = {result.p:.3f})")
    elif result.low < margin:
        low = f"{100 * result.low:+.1f}"
        reasons.append(f"better, but by {low} points at the low end; {100 * margin:.1f} were asked for")
    if retention is not None:
        kept = retention.comparison
        if kept.verdict == "worse":
            reasons.append(f"retention: worse by {-100 * kept.effect:.1f} points on the second taskset")
        elif kept.low < -allowed_loss and kept.effect < 0:
            reasons.append(
                f"retention: a loss of {-100 * kept.low:.1f} points on the second taskset can't be excluded "
                f"(allowed: {100 * allowed_loss:.1f})"
            )
    return Gate(promoted=not reasons, reasons=tuple(reasons))
