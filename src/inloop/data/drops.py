"""The ledger of what was not used: every trajectory, sample and message that is left out has a counted reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop.files import write_json

NAME = "drops.json"


@dataclass(slots=True)
class Drops:
    """Counts that have to balance: what came in is what was kept plus what was dropped."""

    trajectories: int = 0
    """Read."""
    kept: int = 0
    """Trajectories that gave at least one sample."""
    samples: int = 0
    """Written."""
    dropped: list[dict[str, str]] = field(default_factory=list)
    """{kind: trajectory | sample | line, id, reason}."""
    messages: int = 0
    """Sampled messages of the trajectories that were selected."""
    trained: int = 0
    """Of those, the ones that bear loss (in exactly one sample)."""
    untrained: Counter[str] = field(default_factory=Counter)
    """Reason -> sampled messages that bear none."""
    notes: Counter[str] = field(default_factory=Counter)
    """What was done to what was kept, such as tokens masked by redaction."""

    def drop(self, kind: str, name: str, reason: str) -> None:
        self.dropped.append({"kind": kind, "id": name, "reason": reason})

    def reasons(self, kind: str) -> dict[str, int]:
        return dict(Counter(d["reason"] for d in self.dropped if d["kind"] == kind).most_common())

    def faults(self) -> list[str]:
        """Where the counts don't add up; empty when they do."""
        lost = sum(self.reasons("trajectory").values())
        found = []
        if self.trajectories != self.kept + lost:
            found.append(f"{self.trajectories} trajectories read, {self.kept} kept, {lost} dropped with a reason")
        masked = sum(self.untrained.values())
        if self.messages != self.trained + masked:
            found.append(f"{self.messages} sampled messages, {self.trained} trained, {masked} left out with a reason")
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "trajectories": {"read": self.trajectories, "kept": self.kept, "dropped": self.reasons("trajectory")},
            "samples": {"written": self.samples, "dropped": self.reasons("sample")},
            "messages": {"sampled": self.messages, "trained": self.trained, "untrained": dict(self.untrained)},
            "lines": self.reasons("line"),
            "notes": dict(self.notes),
            "dropped": self.dropped,
        }

    def write(self, path: Path) -> None:
        write_json(path, self.to_dict())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Drops:
        return cls(
            trajectories=data["trajectories"]["read"],
            kept=data["trajectories"]["kept"],
            samples=data["samples"]["written"],
            dropped=data["dropped"],
            messages=data["messages"]["sampled"],
            trained=data["messages"]["trained"],
            untrained=Counter(data["messages"]["untrained"]),
            notes=Counter(data["notes"]),
        )

    def rows(self) -> Iterable[tuple[str, str, int]]:
        """(what, reason, count) for the table that a person reads."""
        for kind in ("line", "trajectory", "sample"):
            for reason, count in self.reasons(kind).items():
                yield f"{kind} dropped", reason, count
        for reason, count in self.untrained.most_common():
            yield "message untrained", reason, count
        for note, count in self.notes.most_common():
            yield "note", note, count
