"""Which task comes next: those whose measured pass rate is near one half, where a group says most."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PRIOR = 4.0
"""How many pseudo-attempts a task borrows from the other tasks of its kind."""
FLOOR = 0.02
"""Nothing is ever drawn with a weight below this: a rate can change."""


@dataclass(slots=True)
class Rate:
    passed: float = 0.0
    tried: float = 0.0


class Curriculum:
    """Draws tasks by p (1 - p) of their pass rate; a task not tried yet is judged by its kind.

    Rates fade by `fade` at every update, so that they follow the policy. Same seed and history, same draws."""

    def __init__(
        self, tasks: Sequence[tuple[str, str]], *, seed: int, uniform: bool = False, fade: float = 0.9
    ) -> None:
        if not tasks:
            raise ValueError("a curriculum needs at least one task")
        self.kinds = dict(tasks)
        self.seed, self.uniform, self.fade = seed, uniform, fade
        self.rates: dict[str, Rate] = defaultdict(Rate)
        self.by_kind: dict[str, Rate] = defaultdict(Rate)

    def draw(self, number: int, busy: Sequence[str] = ()) -> str:
        """The task of group `number`; `busy` ones (in flight) are passed over while others are left."""
        rng = random.Random(f"{self.seed}/{number}")
        names = [n for n in self.kinds if n not in set(busy)] or list(self.kinds)
        if self.uniform:
            return rng.choice(names)
        return rng.choices(names, [self.weight(n) for n in names])[0]

    def weight(self, task: str) -> float:
        p = self.pass_rate(task)
        # a task that was just tried often and is flat yields to those that are not known yet
        return max(p * (1 - p) * 4, FLOOR)

    def pass_rate(self, task: str) -> float:
        kind, own = self.by_kind[self.kinds[task]], self.rates[task]
        base = (kind.passed + 1) / (kind.tried + 2)
        return (own.passed + PRIOR * base) / (own.tried + PRIOR)

    def update(self, task: str, rewards: Sequence[float]) -> None:
        """What the scored rollouts of one group earned."""
        for rate in (self.rates[task], self.by_kind[self.kinds[task]]):
            rate.passed = rate.passed * self.fade + sum(r > 0.5 for r in rewards)
            rate.tried = rate.tried * self.fade + len(rewards)

    def state(self) -> dict[str, Any]:
        return {
            "rates": {k: [r.passed, r.tried] for k, r in self.rates.items() if r.tried},
            "by_kind": {k: [r.passed, r.tried] for k, r in self.by_kind.items() if r.tried},
        }

    def restore(self, state: dict[str, Any]) -> None:
        for name in ("rates", "by_kind"):
            getattr(self, name).clear()
            getattr(self, name).update({k: Rate(*v) for k, v in state.get(name, {}).items()})
