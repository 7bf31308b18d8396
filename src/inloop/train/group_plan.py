"""The plan of an RL run: which group is which task; append-only, so that a resumed run has no gap and no double."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from inloop.files import BadLine, append_json, read_json_lines
from inloop.train.curriculum import Curriculum

NAME = "groups.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    number: int
    task: str
    seed: int
    version: int
    """Weights that were live when it was planned."""
    canary: bool = False

    def rollout_id(self, index: int) -> str:
        return f"g{self.number:05d}-{index}"


class Plan:
    """Planned groups in order; the next one is drawn only when nothing is left to finish."""

    def __init__(
        self, path: Path, curriculum: Curriculum, canaries: Curriculum | None, *, seed: int, canary_rate: float
    ):
        self.path, self.curriculum, self.canaries = path, curriculum, canaries
        self.seed, self.canary_rate = seed, canary_rate if canaries else 0.0
        self.bad: list[BadLine] = []
        self.groups = {g.number: g for g in self._read()}

    def _read(self) -> Iterator[Planned]:
        if self.path.exists():
            for _, row in read_json_lines(self.path, self.bad):
                yield Planned(**row)

    def unsettled(self, settled: set[int]) -> list[Planned]:
        """Groups that were planned but neither trained nor dropped before the checkpoint, oldest first."""
        return [g for number, g in sorted(self.groups.items()) if number not in settled]

    def next(self, version: int, busy: list[str]) -> Planned:
        """Draw a group, write it down, return it."""
        number = max(self.groups, default=-1) + 1
        canary = self._is_canary(number)
        source = self.canaries if canary and self.canaries else self.curriculum
        group = Planned(
            number=number,
            task=source.draw(number, busy),
            seed=self.seed * 1_000_003 + number,
            version=version,
            canary=canary,
        )
        append_json(self.path, asdict(group))
        self.groups[number] = group
        return group

    def _is_canary(self, number: int) -> bool:
        """Evenly spread: a decoy whenever the running count falls behind the rate."""
        return int((number + 1) * self.canary_rate) > int(number * self.canary_rate)
