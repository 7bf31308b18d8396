"""What a recipe will take, from a short pilot on this machine: a few waves of rollouts and a few training steps.

The pilot is of the untrained model: one that has learned to submit ends sooner, so times are rather too long."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from inloop.build.starter.builder import build_starter
from inloop.data.pipeline import build_folder
from inloop.files import read_json_lines
from inloop.recipe.config import Recipe
from inloop.rollout.collect import Plan, collect
from inloop.rollout.engines import open_engine
from inloop.rollout.expert import Expert
from inloop.rollout.workers import Recipe as Workers
from inloop.tasks.task import Task
from inloop.tasks.taskset import Taskset

WAVES = 3
WAVE = 8
"""Rollouts of a wave; all of them run at once."""
STEPS = 4
"""Of SFT; the first one warms up and is not counted."""
GROUPS_TRIED = (1.0, 3.0)
"""Groups sampled for each one that is trained on: the others pass or fail as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    low: float
    mean: float
    high: float

    def over(self, count: float) -> Range:
        """Seconds for `count` pieces at this rate a second."""
        return Range(low=count / self.high, mean=count / self.mean, high=count / max(self.low, self.mean / 10))

    def plus(self, other: Range) -> Range:
        return Range(low=self.low + other.low, mean=self.mean + other.mean, high=self.high + other.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    rollouts_per_hour: Range
    train_tokens_per_second: Range
    seconds: dict[str, Range]
    """By stage; stages that take next to nothing are left out."""
    disk_mb: float
    gpus: int
    stand_in: bool
    """The pilot ran on starter tasks, as the recipe's own are not built yet."""

    @property
    def hours(self) -> Range:
        total = Range(low=0.0, mean=0.0, high=0.0)
        for part in self.seconds.values():
            total = total.plus(part)
        return Range(low=total.low / 3600, mean=total.mean / 3600, high=total.high / 3600)

    def to_dict(self) -> dict[str, Any]:
        gpu_hours = {k: v * self.gpus for k, v in asdict(self.hours).items()}
        return {**asdict(self), "hours": asdict(self.hours), "gpu_hours": gpu_hours}


def interval(rates: Sequence[float]) -> Range:
    """Student's t over a few measured rates, 95 %; never below a tenth of the mean."""
    from scipy import stats

    mean = statistics.fmean(rates)
    if len(rates) < 2:
        return Range(low=mean / 2, mean=mean, high=mean * 2)
    half = float(stats.t.ppf(0.975, len(rates) - 1)) * statistics.stdev(rates) / len(rates) ** 0.5
    return Range(low=max(mean - half, mean / 10), mean=mean, high=mean + half)


def forecast(recipe: Recipe) -> Forecast:
    """Runs the pilot in a folder that is thrown away; a minute or two for a small model."""
    with tempfile.TemporaryDirectory(prefix="inloop-pilot-") as place:
        work = Path(place)
        stand_in = recipe.tasks.path is None
        tasks = _tasks(recipe, work)
        rollouts, size = _waves(recipe, tasks, work)
        steps, tokens, weights = _steps(recipe, tasks, work)
    return _put_together(recipe, interval(rollouts), interval(steps), size, tokens, weights, stand_in=stand_in)


def _tasks(recipe: Recipe, work: Path) -> list[Task]:
    if recipe.tasks.path is None:
        return build_starter(work / "tasks", WAVE, recipe.seed, test_share=0.0).tasks
    taskset = Taskset.open(recipe.tasks.path)
    return list(taskset.tasks(taskset.rows[:WAVE]))


def _waves(recipe: Recipe, tasks: Sequence[Task], work: Path) -> tuple[list[float], float]:
    """(rollouts a second of each wave, bytes a rollout)."""
    opened = open_engine(replace(recipe.evaluate.engine, model=recipe.model))
    try:
        settings = Workers(engine=opened.engine, config=recipe.harness, tokenizer=opened.tokenizer, owner="pilot")
        rollouts = settings.build()
        rates = []
        for wave in range(WAVES):
            began = time.monotonic()
            plan = Plan(k=max(1, WAVE // len(tasks)), seed=wave, concurrency=WAVE)
            done = collect(list(tasks), rollouts.run, plan, work / f"wave-{wave}", scope="pilot", identity={})
            rates.append(done.wanted / (time.monotonic() - began))
    finally:
        opened.close()
    ledgers = [work / f"wave-{w}/trajectories.jsonl" for w in range(WAVES)]
    return rates, sum(f.stat().st_size for f in ledgers if f.is_file()) / (WAVES * done.wanted)


def _steps(recipe: Recipe, tasks: Sequence[Task], work: Path) -> tuple[list[float], float, float]:
    """(tokens a second of each SFT step, tokens a trace, MB of a training run's folder)."""
    from inloop.train.sft import sft

    expert = Workers(engine=Expert(list(tasks), recipe.expert.expert), config=recipe.harness, owner="pilot").build()
    collect(list(tasks), expert.run, Plan(seed=recipe.seed), work / "expert", scope="pilot", identity={})
    built = build_folder([work / "expert"], work / "data", recipe.data)
    settings = replace(recipe.sft, max_steps=STEPS, held_out=0.0, smoke=False, save_every=STEPS, epochs=100.0)
    sft(work / "data", work / "sft", settings)
    rows = [row for _, row in read_json_lines(work / "sft/metrics.jsonl") if "num_tokens" in row]
    rates = [(b["num_tokens"] - a["num_tokens"]) / b["seconds"] for a, b in itertools.pairwise(rows)]
    size = sum(f.stat().st_size for f in (work / "sft").rglob("*") if f.is_file()) / 2**20
    return rates, statistics.fmean(len(s.input_ids) for s in built.samples), size


def _put_together(
    recipe: Recipe, rollouts: Range, tokens: Range, size: float, trace: float, folder: float, *, stand_in: bool
) -> Forecast:
    """`size`: bytes a rollout; `trace`: tokens a trace; `folder`: MB of a training run."""
    counts = _counts(recipe)
    low, high = GROUPS_TRIED
    tried = Range(low=rollouts.low / high, mean=rollouts.mean / ((low + high) / 2), high=rollouts.high / low)
    trained = recipe.grpo.steps * recipe.grpo.samples_per_step * trace
    parts = {
        "sft": tokens.over(counts["expert"] * trace * recipe.sft.epochs),
        "grpo": _slower(tried.over(counts["grpo"]), tokens.over(trained)),
        "evaluate": rollouts.over(counts["evaluate"]),
    }
    kept = sum(counts.values()) * size / 2**20 + folder * sum(s in recipe.stages for s in ("sft", "grpo"))
    return Forecast(
        rollouts_per_hour=Range(low=rollouts.low * 3600, mean=rollouts.mean * 3600, high=rollouts.high * 3600),
        train_tokens_per_second=tokens,
        seconds={name: part for name, part in parts.items() if name in recipe.stages},
        disk_mb=round(kept, 1),
        gpus=_gpus(),
        stand_in=stand_in,
    )


def _counts(recipe: Recipe) -> dict[str, float]:
    """Rollouts that are kept, by stage."""
    rows = Taskset.open(recipe.tasks.path).rows if recipe.tasks.path else None
    held_out = sum(r.split == "test" for r in rows) if rows else round(recipe.tasks.n * recipe.tasks.test_share)
    train = sum(r.split == "train" for r in rows) if rows else recipe.tasks.n - held_out
    scored = min(held_out, recipe.evaluate.limit or held_out)
    checkpoints = 1 + sum(s in recipe.stages for s in ("sft", "grpo"))
    return {
        "expert": min(recipe.expert.tasks, round(train * (1 - recipe.tasks.rl_share))),
        "grpo": recipe.grpo.steps * recipe.grpo.samples_per_step,
        "evaluate": scored * recipe.evaluate.k * checkpoints,
    }


def _slower(a: Range, b: Range) -> Range:
    """Sampling and training run side by side: the slower of the two decides."""
    return Range(low=max(a.low, b.low), mean=max(a.mean, b.mean), high=max(a.high, b.high))


def _gpus() -> int:
    import torch

    return int(torch.cuda.device_count())
