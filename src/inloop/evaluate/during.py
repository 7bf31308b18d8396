"""Task success while a training runs: what `inloop sft` asks for at each measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from inloop.evaluate.run import EvalSettings, evaluate
from inloop.rollout.engines import EngineConfig
from inloop.train.checkpoint import read_about


@dataclass(frozen=True, kw_only=True)
class DuringSettings:
    tasks: Path
    """Held-out tasks: their test split."""
    k: int = 1
    limit: int = 40
    """At most so many tasks; 0 takes all."""
    engine: EngineConfig = field(default_factory=EngineConfig)


def success_on(settings: DuringSettings, run: Path) -> Callable[[Path], dict[str, float]]:
    """A function from a checkpoint to its pass rate with a 95 % interval; each measurement is kept under `run`.

    A measurement that only met faults has no rate: nothing is returned for it, never 0."""

    def measure(checkpoint: Path) -> dict[str, float]:
        step = read_about(checkpoint).step
        told = EvalSettings(model=str(checkpoint), k=settings.k, limit=settings.limit, engine=settings.engine)
        named = replace(told, name=f"{run.name}-{step}")
        rate = evaluate(named, settings.tasks, run / "measured" / f"step-{step}").summary["pass@1"]
        if rate["mean"] is None:
            return {}
        return {"success": rate["mean"], "success_low": rate["low"], "success_high": rate["high"]}

    return measure
