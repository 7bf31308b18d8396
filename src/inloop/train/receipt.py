"""The receipt: what share of what was trained is exactly what was sampled, and what became of the rest."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop.data.sample import MASKED, Sample
from inloop.errors import DataError
from inloop.files import write_json
from inloop.trace.trajectory import Trajectory

NAME = "receipt.json"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Beyond these a run fails."""

    token_identity: float = 1.0
    """Least share of trained tokens that are the sampled ones, in a context that the engine saw."""
    step0_ratio: float = 0.0
    """Most mean |ratio - 1| at the first step; 0 takes 1e-3 for float32 and 1e-2 for bfloat16."""
    step0_kl: float = 0.0
    """Most mean KL estimate at the first step; 0 takes the same."""
    later_ratio: float = 0.5
    """Most mean |ratio - 1| of any later step: stale or wrong weights."""
    fault_share: float = 0.2
    """Most faults among rollouts."""
    leaks: int = 0
    """Sandboxes that outlived their rollout."""

    def ratio(self, dtype: str) -> float:
        return self.step0_ratio or (1e-3 if "32" in dtype else 1e-2)

    def kl(self, dtype: str) -> float:
        return self.step0_kl or (1e-3 if "32" in dtype else 1e-2)


@dataclass(slots=True)
class Witness:
    """Compared token by token, by code that shares nothing with the builder of the samples."""

    trained: int = 0
    identical: int = 0


def witness(sample: Sample, trajectory: Trajectory) -> Witness:
    """Walk a context that the engine saw beside the sample: same ids at the same places, loss only on sampled ones,
    and on all of them their own log-probabilities."""
    best = Witness(trained=sum(label != MASKED for label in sample.labels))
    for path in trajectory.paths():
        if any(node.sampled and node.token_ids is None for node in path):
            continue
        best.identical = max(best.identical, _agreeing(sample, path))
    return best


def _agreeing(sample: Sample, path: Sequence[Any]) -> int:
    count, at = 0, 0
    for node in path:
        for i, token in enumerate(node.token_ids or ()):
            if at >= len(sample.input_ids) or sample.input_ids[at] != token:
                return count  # from here on the context is another one
            if sample.labels[at] != MASKED and node.sampled and sample.labels[at] == token:
                said = node.logprobs[i] if node.logprobs else None
                kept = sample.logprobs[at] if sample.logprobs else None
                count += said is not None and kept is not None and abs(said - kept) < 1e-4
            at += 1
    return count


@dataclass(slots=True)
class Receipt:
    """Filled while a run goes on; `verdict` says where it fails its thresholds."""

    dtype: str = "bfloat16"
    thresholds: Thresholds = field(default_factory=Thresholds)
    trained: int = 0
    identical: int = 0
    rollouts: int = 0
    groups: int = 0
    forks: int = 0
    drops: Counter[str] = field(default_factory=Counter)
    """Groups, rollouts and samples that did not train, by reason."""
    faults: Counter[str] = field(default_factory=Counter)
    stops: Counter[str] = field(default_factory=Counter)
    staleness: Counter[int] = field(default_factory=Counter)
    ratios: list[tuple[int, int, float, float]] = field(default_factory=list)
    """(step, tokens, mean |ratio - 1|, mean KL) of each micro-batch."""
    syncs: list[tuple[int, float]] = field(default_factory=list)
    """(weight version, mean |ratio - 1| of a probe that the engine sampled right after it took these weights)."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time: sampling, tools, tests (rollouts, added up), training, waiting, evaluating (trainer)."""
    leaks: int = 0

    def took(self, what: str, seconds: float) -> None:
        self.seconds[what] = self.seconds.get(what, 0.0) + seconds

    def step(self, first: bool) -> tuple[float, float] | None:
        """Token-weighted mean |ratio - 1| and KL of the first step, or the worst of all later ones."""
        if not self.ratios:
            return None
        start = self.ratios[0][0]
        steps: dict[int, list[tuple[int, float, float]]] = {}
        for number, tokens, ratio, kl in self.ratios:
            steps.setdefault(number, []).append((tokens, ratio, kl))
        chosen = [_mean(rows) for number, rows in steps.items() if (number == start) is first]
        return max(chosen) if chosen else None

    def failures(self) -> list[str]:
        """Each threshold that does not hold, in words."""
        limits, out = self.thresholds, []
        identity = self.identical / self.trained if self.trained else 1.0
        if identity < limits.token_identity:
            out.append(
                f"{identity:.4%} of the trained tokens are the sampled ones (least: {limits.token_identity:.2%})"
            )
        if first := self.step(True):
            for name, value, most in zip(
                ("|ratio - 1|", "KL"), first, (limits.ratio(self.dtype), limits.kl(self.dtype)), strict=True
            ):
                if not value <= most:
                    out.append(f"{name} at the first step is {value:.2e} (most: {most:.0e} in {self.dtype})")
        if (later := self.step(False)) and not later[0] <= limits.later_ratio:
            out.append(f"|ratio - 1| of a later step is {later[0]:.2f} (most: {limits.later_ratio})")
        out += [
            f"the engine does not serve weight version {version}: |ratio - 1| of the probe is {off:.2e}"
            for version, off in self.syncs
            if not off <= 3 * limits.ratio(self.dtype)
        ][:3]
        if self.rollouts and sum(self.faults.values()) / self.rollouts > limits.fault_share:
            out.append(f"{sum(self.faults.values())} of {self.rollouts} rollouts met a fault: {dict(self.faults)}")
        if self.leaks > limits.leaks:
            out.append(f"{self.leaks} sandboxes outlived their rollout")
        return out

    def to_dict(self) -> dict[str, Any]:
        first, later = self.step(True), self.step(False)
        return {
            "verdict": "fails" if self.failures() else "holds",
            "failures": self.failures(),
            "token_identity": self.identical / self.trained if self.trained else None,
            "trained_tokens": self.trained,
            "rollouts": self.rollouts,
            "groups": self.groups,
            "forks": self.forks,
            "drops": dict(self.drops),
            "zero_variance_share": self.drops["zero_variance"] / self.groups if self.groups else None,
            "step0": {"abs_ratio": first[0], "kl": first[1]} if first else None,
            "worst_later_step": {"abs_ratio": later[0], "kl": later[1]} if later else None,
            "syncs": {"count": len(self.syncs), "worst_abs_ratio": max((off for _, off in self.syncs), default=None)},
            "staleness": {str(k): v for k, v in sorted(self.staleness.items())},
            "faults": dict(self.faults),
            "stops": dict(self.stops),
            "leaks": self.leaks,
            "seconds": {k: round(v, 2) for k, v in self.seconds.items()},
            "dtype": self.dtype,
        }

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint; `restore` goes on from there."""
        return {k: getattr(self, k) for k in self.__slots__ if k not in ("dtype", "thresholds")}

    def restore(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if name == "staleness":
                value = Counter({int(k): v for k, v in value.items()})
            elif isinstance(getattr(self, name), Counter):
                value = Counter(value)
            elif name in ("ratios", "syncs"):
                value = [tuple(row) for row in value]
            setattr(self, name, value)

    def line(self) -> str:
        """The receipt in one line."""
        first, data = self.step(True), self.to_dict()
        identity = "-" if data["token_identity"] is None else f"{data['token_identity']:.2%}"
        ratio = f"{first[0]:.1e}, KL {first[1]:.1e}" if first else "not measured"
        old = statistics.fmean(self.staleness.elements()) if self.staleness else 0.0
        return (
            f"receipt {data['verdict']}: {identity} of {self.trained} trained tokens are the sampled ones, "
            f"step-0 |ratio-1| {ratio}, staleness {old:.2f}, {sum(self.faults.values())} faults, {self.leaks} leaks"
        )

    def write(self, folder: Path) -> Path:
        write_json(folder / NAME, self.to_dict())
        return folder / NAME

    def check(self) -> None:
        """Raises DataError when a threshold does not hold."""
        if failures := self.failures():
            raise DataError(
                "the receipt does not hold: " + "; ".join(failures),
                fix="the checkpoint is kept but must not be trusted; look at receipt.json and `inloop data show`",
            )


def _mean(rows: Sequence[tuple[int, float, float]]) -> tuple[float, float]:
    tokens = sum(r[0] for r in rows) or 1
    return sum(r[0] * r[1] for r in rows) / tokens, sum(r[0] * r[2] for r in rows) / tokens
