"""A group is k rollouts of one task and one seed; what its rewards say becomes advantages, or a counted reason."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from inloop.data.sample import Sample
from inloop.trace.trajectory import Trajectory

FLAT = 1e-6
"""A standard deviation below this carries no signal."""


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    base: Literal["all", "fraction"] = "all"
    """all: 1 if every hidden test passes, else 0. fraction: the share that pass."""
    must_submit: bool = True
    """An episode that did not submit earns nothing, whatever its files are."""
    turn_cost: float = 0.0
    """Taken off for each turn, as a share of the turn budget."""
    invalid_call_cost: float = 0.0
    """Taken off for each call that could not be run."""
    recovery: float = 0.0
    """Added to a pass that came after a failing test run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    rollout: str
    reward: float | None
    """What trains: the verifier's value and the shaping parts; None is a fault."""
    verified: float | None
    """The verifier's value alone."""
    parts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    scored: tuple[Scored, ...]
    advantages: tuple[float | None, ...]
    """One a rollout; None for a fault and throughout a dropped group."""
    dropped: Literal["", "zero_variance", "too_few_scored"] = ""
    mean: float = math.nan
    std: float = math.nan

    @property
    def trains(self) -> bool:
        return not self.dropped


def score(trajectory: Trajectory, config: RewardConfig, max_turns: int) -> Scored:
    """Verifier first; shaping parts are named, kept apart, and never turn a fault into a number."""
    verified = _verified(trajectory, config)
    if verified is None:
        return Scored(rollout=trajectory.id, reward=None, verified=None)
    counts = trajectory.counts
    parts = {
        "turn_cost": -config.turn_cost * counts.get("turns", 0) / max(max_turns, 1),
        "invalid_call_cost": -config.invalid_call_cost * counts.get("invalid_calls", 0),
        "recovery": config.recovery if verified > 0 and recovered(trajectory) else 0.0,
    }
    parts = {name: value for name, value in parts.items() if value}
    return Scored(rollout=trajectory.id, reward=verified + sum(parts.values()), verified=verified, parts=parts)


def recovered(trajectory: Trajectory) -> bool:
    """Passed after at least one failing test run."""
    value = trajectory.reward.value if trajectory.reward else None
    return bool(value) and trajectory.counts.get("test_failures", 0) > 0


def _verified(trajectory: Trajectory, config: RewardConfig) -> float | None:
    reward, stop = trajectory.reward, trajectory.stop
    if reward is None or stop is None or not stop.trains:
        return None
    value = reward.value if config.base == "all" else reward.fraction
    if reward.value is None or value is None or not math.isfinite(value):
        return None
    if config.must_submit and stop.value != "submitted":
        return 0.0
    return value


def advantages(scored: Sequence[Scored], scale: Literal["std", "none"] = "std") -> Group:
    """(r - mean) / std within the group, over the rollouts that could be scored."""
    values = [s.reward for s in scored if s.reward is not None]
    if len(values) < 2:
        return Group(scored=tuple(scored), advantages=(None,) * len(scored), dropped="too_few_scored")
    mean, std = statistics.fmean(values), statistics.pstdev(values)
    if std < FLAT:
        return Group(
            scored=tuple(scored), advantages=(None,) * len(scored), dropped="zero_variance", mean=mean, std=std
        )
    by = std + 1e-8 if scale == "std" else 1.0
    out = tuple(None if s.reward is None else (s.reward - mean) / by for s in scored)
    return Group(scored=tuple(scored), advantages=out, mean=mean, std=std)


def level(samples: Sequence[Sample]) -> None:
    """Scale the advantages of a group's rows so that each rollout weighs the same, however many tokens it has.

    The loss is a mean over tokens. Failures are long, so their advantages would outweigh those of the passes, and
    what both of them say, the form of a call first, would be unlearnt."""
    tokens: Counter[str] = Counter()
    for sample in samples:
        tokens[sample.trajectory] += sample.trained
    mean = tokens.total() / max(len(tokens), 1)
    for sample in samples:
        if sample.advantage is not None and tokens[sample.trajectory]:
            sample.advantage *= mean / tokens[sample.trajectory]
