"""What a collection came to: rates without faults, faults by family, where the time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from inloop.trace.trajectory import Trajectory
from inloop.types import StopReason, Verdict

INSIDE = "sampling"
"""The timing that is the model's: sampling, and waiting for the engine's turn."""


@dataclass(kw_only=True)
class Summary:
    wanted: int = 0
    before: int = 0
    """Rollouts of this plan that the ledger held at the start; in the rates with those of this run."""
    done: int = 0
    """Written in this run."""
    passed: int = 0
    scored: int = 0
    cancelled: int = 0
    stops: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    """By family; none of them is in the ledger or in a rate."""
    counts: Counter[str] = field(default_factory=Counter)
    timings: Counter[str] = field(default_factory=Counter)
    """Seconds over all rollouts."""
    seconds: float = 0.0
    """Of the run."""
    ended: str = "complete"
    """'complete', 'interrupted', 'deadline', 'token budget', 'engine gone'."""
    leaked_sandboxes: int = 0

    @classmethod
    def of(cls, trajectories: Iterable[Trajectory]) -> Summary:
        made = cls()
        for trajectory in trajectories:
            made.add(trajectory)
        return made

    def add(self, t: Trajectory) -> None:
        """One that this run made."""
        if t.stop is StopReason.CANCELLED:
            self.cancelled += 1
            return
        self.timings.update(t.timings)
        self.counts.update({"retries": t.counts.get("retries", 0)})
        if t.stop is not None and t.stop.is_fault:
            self.faults[t.stop.value] += 1
            return
        self.done += 1
        self.counts.update({k: v for k, v in t.counts.items() if k != "retries"})
        self._judged(t)

    def add_before(self, t: Trajectory) -> None:
        """One that the ledger held: part of the rates, not of this run's time."""
        self.before += 1
        self._judged(t)

    def _judged(self, t: Trajectory) -> None:
        self.stops[t.stop.value if t.stop else "unknown"] += 1
        if t.reward is not None:
            self.verdicts[t.reward.verdict.value] += 1
            self.scored += t.reward.verdict is not Verdict.FAULT
            self.passed += t.reward.value is not None and t.reward.value >= 1

    @property
    def rate(self) -> float | None:
        return self.passed / self.scored if self.scored else None

    @property
    def per_minute(self) -> float:
        return 60 * self.done / self.seconds if self.seconds else 0.0

    @property
    def outside_model(self) -> float | None:
        """Share of the rollouts' own time that is not sampling."""
        total = self.timings["total"]
        return 1 - self.timings[INSIDE] / total if total else None

    def note(self) -> str:
        """The live line beside the progress bar."""
        rate = f"pass {self.passed}/{self.scored} ({100 * (self.rate or 0):.0f} %)"
        faults = f" · faults {sum(self.faults.values())}" if self.faults else ""
        return rate + faults

    def to_dict(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        out = {k: dict(v) if isinstance(v, Counter) else v for k, v in own.items()}
        rounded = {"rate": self.rate, "per_minute": self.per_minute, "outside_model": self.outside_model}
        out["timings"] = {k: round(v, 3) for k, v in self.timings.items()}
        return out | {k: None if v is None else round(v, 4) for k, v in rounded.items()}

    def lines(self) -> list[str]:
        """For people."""
        rate = f"{100 * self.rate:.1f} %" if self.rate is not None else "no rate"
        held = f"; {self.before} were there before" if self.before else ""
        out = [
            f"{self.done} rollouts in {self.seconds:.0f} s, {self.per_minute:.1f} a minute{held}",
            f"passed {self.passed} of {self.scored} scored: {rate}",
            f"stops: {_counted(self.stops)}",
        ]
        if self.faults:
            out.append(f"faults, in no rate: {_counted(self.faults)}")
        if self.cancelled:
            out.append(f"cancelled: {self.cancelled}")
        if self.outside_model is not None:
            parts = ", ".join(f"{k} {v:.1f}" for k, v in self.timings.most_common() if k != "total" and v >= 0.05)
            out.append(f"{100 * self.outside_model:.0f} % of the rollouts' time outside the model; seconds: {parts}")
        if self.leaked_sandboxes:
            out.append(f"sandboxes left open: {self.leaked_sandboxes} (`inloop sandbox clean`)")
        return out


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counter.most_common()) or "none"
