"""Trajectories of one checkpoint on one taskset -> what it scores, with intervals; faults stand apart."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from inloop.stats import Interval, mean_interval, pass_at_k
from inloop.trace.trajectory import Trajectory


@dataclass(slots=True, kw_only=True)
class TaskScore:
    """What the samples of one task came to."""

    id: str
    kind: str = ""
    difficulty: float | None = None
    level: str = ""
    unit: str = ""
    scored: int = 0
    passed: int = 0
    faults: int = 0
    fractions: list[float] = field(default_factory=list)
    rollouts: list[str] = field(default_factory=list)
    """Ids of the scored samples, in the order of `outcomes`."""
    outcomes: list[bool] = field(default_factory=list)
    oracle: bool | None = None
    """The task's own solution passes; None when it was never audited."""

    @property
    def rate(self) -> float:
        return self.passed / self.scored

    def pass_at(self, k: int) -> float | None:
        return pass_at_k(self.scored, self.passed, k) if self.scored >= k else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """What scoring needs to know of a task; from the taskset's index."""

    id: str
    kind: str = ""
    difficulty: float | None = None
    """As it was measured."""
    level: str = ""
    """As the builder expects it."""
    unit: str = ""
    oracle: bool | None = None


def score_tasks(tasks: Iterable[TaskFacts], trajectories: Iterable[Trajectory]) -> list[TaskScore]:
    """One a task, in the order of `tasks`; a rollout of another task is not counted here."""
    table = {t.id: TaskScore(**asdict(t)) for t in tasks}
    for trajectory in trajectories:
        if row := table.get(trajectory.task_id or ""):
            _add(row, trajectory)
    return list(table.values())


def _add(row: TaskScore, trajectory: Trajectory) -> None:
    reward, stop = trajectory.reward, trajectory.stop
    if stop is None or not stop.trains or reward is None or reward.value is None:
        row.faults += 1
        return
    passed = reward.value >= 1.0
    row.scored += 1
    row.passed += passed
    row.rollouts.append(trajectory.id)
    row.outcomes.append(passed)
    row.fractions.append(reward.fraction if reward.fraction is not None else float(passed))


def summarise(rows: Sequence[TaskScore], trajectories: Sequence[Trajectory], *, k: int) -> dict[str, Any]:
    """The figures of `results.json`; a task all of whose samples met faults is left out of every rate, counted."""
    scored = [r for r in rows if r.scored]
    audited = [r.oracle for r in rows if r.oracle is not None]
    return {
        "tasks": len(rows),
        "tasks_scored": len(scored),
        "tasks_without_score": sorted(r.id for r in rows if not r.scored)[:50],
        "samples": sum(r.scored for r in rows),
        "pass@1": interval([r.rate for r in scored]),
        **{f"pass@{n}": interval(_pass_at(scored, n)) for n in _ks(scored, k)},
        "fraction": interval([statistics.fmean(r.fractions) for r in scored]),
        "ceiling": {"solved": sum(audited), "audited": len(audited)},
        "faults": _faults(trajectories),
        "stops": dict(Counter(t.stop.value if t.stop else "unknown" for t in trajectories)),
        "verdicts": dict(Counter(t.reward.verdict.value for t in trajectories if t.reward)),
        "recovery": recovery(trajectories),
        "valid_calls": interval(valid_calls(trajectories)),
        **_means(trajectories),
        "by_kind": _by(scored, lambda r: r.kind or "-"),
        "by_difficulty": _by(scored, _difficulty),
    }


def _difficulty(row: TaskScore) -> str:
    return (row.level or "-") if row.difficulty is None else f"{row.difficulty:.1f}"


def _ks(rows: Sequence[TaskScore], k: int) -> list[int]:
    most = max((r.scored for r in rows), default=0)
    return [n for n in sorted({2, 4, 8, 16, k}) if 1 < n <= min(k, most)]


def _pass_at(rows: Sequence[TaskScore], k: int) -> list[float]:
    return [value for row in rows if (value := row.pass_at(k)) is not None]


def interval(values: Sequence[float]) -> dict[str, float | int | None]:
    """mean, low, high in [0, 1] and how many tasks they rest on."""
    found: Interval = mean_interval(values)
    mean = None if not values else found.mean
    return {"mean": mean, "low": found.low, "high": found.high, "tasks": len(values)}


def recovery(trajectories: Sequence[Trajectory]) -> dict[str, float | int | None]:
    """Of the episodes in which a test run failed, the share that passed in the end."""
    met = [t for t in trajectories if t.counts.get("test_failures", 0) > 0 and t.reward and t.reward.value is not None]
    passed = sum(t.reward.value >= 1.0 for t in met if t.reward and t.reward.value is not None)
    return {"episodes": len(met), "passed": passed, "rate": passed / len(met) if met else None}


def valid_calls(trajectories: Sequence[Trajectory]) -> list[float]:
    """Of each task, the share of its turns that are a call which can be read and run; a turn without a call is not."""
    turns: defaultdict[str, float] = defaultdict(float)
    invalid: defaultdict[str, float] = defaultdict(float)
    for t in trajectories:
        turns[t.task_id or ""] += t.counts.get("turns", 0)
        invalid[t.task_id or ""] += min(t.counts.get("invalid_calls", 0), t.counts.get("turns", 0))
    return [1 - invalid[task] / count for task, count in turns.items() if count]


def _faults(trajectories: Sequence[Trajectory]) -> dict[str, int]:
    return dict(Counter(t.stop.value for t in trajectories if t.stop and t.stop.is_fault))


def _means(trajectories: Sequence[Trajectory]) -> dict[str, float | None]:
    def mean(values: list[float]) -> float | None:
        return statistics.fmean(values) if values else None

    return {
        "turns_mean": mean([t.counts["turns"] for t in trajectories if "turns" in t.counts]),
        "sampled_tokens_mean": mean([t.counts["sampled_tokens"] for t in trajectories if "sampled_tokens" in t.counts]),
        "seconds_mean": mean([t.timings["total"] for t in trajectories if "total" in t.timings]),
    }


def _by(rows: Sequence[TaskScore], key: Any) -> dict[str, dict[str, float | int | None]]:
    groups: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row.rate)
    return {name: interval(values) for name, values in sorted(groups.items())}
