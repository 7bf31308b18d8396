"""Before RL: would it have a signal? A few rollouts a task say how many groups would be mixed, and what to do."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from inloop.errors import DataError
from inloop.stats import Interval, proportion_interval
from inloop.trace.trajectory import Trajectory
from inloop.train.groups import RewardConfig, score

Step = Literal["go", "sft first", "easier tasks", "harder tasks", "larger groups", "mend faults"]

ENOUGH = 0.2
"""Share of mixed groups from which RL is worth its compute."""
NONE = 0.05
"""When even the upper end of the interval is below this, a run refuses to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    step: Step
    sentence: str
    tasks: int
    k: int
    histogram: dict[int, int]
    """Passes in a group -> how many groups."""
    pass_rate: float
    mixed: Interval
    mixed_at: dict[int, float]
    """Group size -> expected share of mixed groups."""
    groups_per_hour: float
    mixed_groups_per_hour: float
    """The expected signal."""
    faults: int
    rollouts: int

    @property
    def has_signal(self) -> bool:
        """Some group was mixed, or could well be: rollouts passed and failed, and enough groups may be mixed."""
        some = self.mixed.mean > 0 or 0 < self.pass_rate < 1
        return some and self.mixed.high >= NONE and self.step != "mend faults"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "has_signal": self.has_signal}


def advise(trajectories: Iterable[Trajectory], *, seconds: float, rewards: RewardConfig, max_turns: int) -> Advice:
    """Read the rollouts of a pilot that took `seconds` of wall time. Raises DataError when none could be scored."""
    groups: dict[str, list[bool]] = defaultdict(list)
    faults = rollouts = 0
    for trajectory in trajectories:
        rollouts += 1
        scored = score(trajectory, rewards, max_turns)
        if scored.verified is None:
            faults += 1
        else:
            groups[trajectory.task_id or ""].append(scored.verified > 0.5)
    full = {task: passes for task, passes in groups.items() if len(passes) >= 2}
    if not full:
        raise DataError(
            f"no group of at least two scored rollouts ({rollouts} rollouts, {faults} met faults)",
            fix="mend the faults first: `inloop doctor` names them",
        )
    return _advice(full, faults, rollouts, seconds)


def _advice(groups: dict[str, list[bool]], faults: int, rollouts: int, seconds: float) -> Advice:
    k = max(len(p) for p in groups.values())
    mixed = sum(0 < sum(p) < len(p) for p in groups.values())
    share = proportion_interval(mixed, len(groups))
    rate = statistics.fmean(sum(p) / len(p) for p in groups.values())
    expected = {size: expected_mixed(list(groups.values()), size) for size in sorted({4, 8, 16, 32, k})}
    per_hour = 3600 * len(groups) / seconds if seconds > 0 else 0.0
    step = _step(share, rate, expected, k, faults / rollouts)
    return Advice(
        step=step,
        sentence=_sentence(step, share, rate, expected, k, faults, rollouts),
        tasks=len(groups),
        k=k,
        histogram=dict(sorted(Counter(sum(p) for p in groups.values()).items())),
        pass_rate=rate,
        mixed=share,
        mixed_at=expected,
        groups_per_hour=per_hour,
        mixed_groups_per_hour=per_hour * share.mean,
        faults=faults,
        rollouts=rollouts,
    )


def expected_mixed(groups: Sequence[Sequence[bool]], size: int) -> float:
    """Expected share of mixed groups of `size`, from what smaller ones showed.

    Each task's rate is shrunk to the mean as a beta-binomial prior with one pseudo-attempt would, so that a task with
    no pass among few tries is not taken for impossible."""
    mean = statistics.fmean(sum(g) / len(g) for g in groups)
    rates = [(sum(g) + mean) / (len(g) + 1) for g in groups]
    return statistics.fmean(1 - p**size - (1 - p) ** size for p in rates)


def _step(share: Interval, rate: float, expected: dict[int, float], k: int, fault_share: float) -> Step:
    if fault_share > 0.2:
        return "mend faults"
    if share.mean >= ENOUGH:
        return "go"
    if rate < 0.01:
        return "sft first"
    if rate > 0.85:
        return "harder tasks"
    larger = [size for size in expected if size > k and expected[size] >= ENOUGH]
    return "larger groups" if larger else "easier tasks"


def _sentence(
    step: Step, share: Interval, rate: float, expected: dict[int, float], k: int, faults: int, rollouts: int
) -> str:
    seen = f"{share} of the groups of {k} are mixed, {100 * rate:.1f} % of the rollouts pass"
    larger = next((size for size in expected if size > k and expected[size] >= ENOUGH), 2 * k)
    return {
        "go": f"Go: {seen}.",
        "sft first": f"SFT first: {seen}; there is next to nothing to reinforce.",
        "easier tasks": f"Easier tasks: {seen}; even groups of 32 would mostly fail as a whole.",
        "harder tasks": f"Harder tasks: {seen}; little is left to learn on these.",
        "larger groups": f"Larger groups: {seen}; about {100 * expected[larger]:.0f} % of groups of {larger} would be "
        "mixed.",
        "mend faults": f"Mend the faults first: {faults} of {rollouts} rollouts met one; run `inloop doctor`.",
    }[step]
