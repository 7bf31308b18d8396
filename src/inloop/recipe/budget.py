"""A wall-clock budget for a whole recipe: training gets what the measuring at the end does not need."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from inloop.errors import ConfigError
from inloop.recipe.config import Recipe

UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
MEASURING = 0.25
"""Share of the budget that is kept for evaluation, comparison and report."""
SFT = 0.4
"""Share of what is left that SFT may take where GRPO follows."""


def parse_budget(text: str) -> float:
    """'2h', '90min' or '1800' -> seconds. Raises ConfigError."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ").strip()
    unit = text[len(text.rstrip("abcdefghijklmnopqrstuvwxyz ")) :].strip() or "s"
    try:
        seconds = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        raise ConfigError(f"budget {text!r} is no time", fix="write 90min, 2h or 1800s") from None
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"budget {text!r} is no time above 0", fix="write 90min, 2h or 1800s")
    return seconds


@dataclass
class Budget:
    """Counted from when it is made; `spent` are the seconds of earlier runs of the same folder. 0 is no limit."""

    seconds: float
    spent: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self.seconds - self.spent - (time.monotonic() - self.began)

    def fitted(self, recipe: Recipe, stage: str) -> Recipe:
        """`recipe` with the time limit of a training stage that is about to begin."""
        if not self.seconds or stage not in ("sft", "grpo"):
            return recipe
        room = max(self.left - MEASURING * self.seconds, 1.0)
        if stage == "grpo":
            return replace(recipe, grpo=replace(recipe.grpo, wall_seconds=_sooner(recipe.grpo.wall_seconds, room)))
        room *= SFT if "grpo" in recipe.stages else 1.0
        return replace(recipe, sft=replace(recipe.sft, wall_seconds=_sooner(recipe.sft.wall_seconds, room)))

    def gone(self) -> bool:
        return bool(self.seconds) and self.left <= 0


def _sooner(given: float, room: float) -> float:
    return round(min(given or room, room), 1)
