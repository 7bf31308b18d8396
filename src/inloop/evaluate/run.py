"""`inloop eval` as a function: a checkpoint's rollouts on held-out tasks, collected once and scored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inloop.engine.models import SMOLLM2
from inloop.errors import ConfigError, TaskError
from inloop.evaluate.results import Results
from inloop.evaluate.score import TaskFacts, score_tasks, summarise
from inloop.files import read_json_lines
from inloop.harness.config import HarnessConfig
from inloop.progress import bar
from inloop.rollout.collect import FAULTS, Plan, collect
from inloop.rollout.engines import EngineConfig, Opened, open_engine
from inloop.rollout.workers import Recipe
from inloop.sandbox.base import Diff
from inloop.tasks.task import Task
from inloop.tasks.taskset import Filter, Row, Taskset
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Trajectory
from inloop.train.origin import Origin, origin
from inloop.types import Reward, Verdict
from inloop.verify.oracle import apply_patch
from inloop.verify.verifier import Verifier


@dataclass(frozen=True, kw_only=True)
class EvalSettings:
    model: str = SMOLLM2
    """A checkpoint folder of ours, a model folder, a Hugging Face id, or the name of an API model."""
    engine: EngineConfig = field(default_factory=EngineConfig)
    filter: Filter = field(default_factory=lambda: Filter(split="test"))
    limit: int = 0
    """At most so many tasks; 0 takes all."""
    k: int = 4
    """Samples a task."""
    temperature: float | None = None
    """None takes the harness's."""
    seed: int = 0
    concurrency: int = 32
    harness: HarnessConfig | None = None
    """None takes the one that the checkpoint carries."""
    name: str = ""
    """Of the checkpoint, for people; empty takes its folder's."""
    price_in: float = 0.0
    """Per million prompt tokens, for API models."""
    price_out: float = 0.0
    """Per million sampled tokens."""


Served = tuple[Opened, HarnessConfig, dict[str, Any]]
"""An engine that serves the checkpoint, the harness to use, and what is known of both."""


def evaluate(settings: EvalSettings, tasks: Path, out: Path) -> Results:
    """Collect what `out` does not hold yet, score all of it, write `results.json`."""
    chosen(tasks, settings)  # a mistake in the tasks is told before an engine starts
    with serving(settings) as served:
        return evaluate_served(settings, tasks, out, served)


def evaluate_served(settings: EvalSettings, tasks: Path, out: Path, served: Served) -> Results:
    """The same with an engine that is there already: several sets of tasks, one start."""
    taskset, rows = chosen(tasks, settings)
    opened, harness, about = served
    recipe = Recipe(engine=opened.engine, config=harness, tokenizer=opened.tokenizer, owner=str(out))
    rollouts = recipe.build()
    collect(
        list(taskset.tasks(rows)),
        rollouts.run,
        Plan(k=settings.k, seed=settings.seed, concurrency=settings.concurrency),
        out,
        scope=about["fingerprint"] + harness.hash(),
        identity={"checkpoint": about, "harness": harness.hash(), "temperature": harness.temperature},
    )
    return write_results(settings, taskset, rows, out, about, harness)


def write_results(
    settings: EvalSettings,
    taskset: Taskset,
    rows: Sequence[Row],
    out: Path,
    about: dict[str, Any],
    harness: HarnessConfig,
) -> Results:
    """Score the ledger in `out`."""
    trajectories = [*TrajectoryStore(out), *faulted(out)]
    scored = score_tasks([facts(r) for r in rows], trajectories)
    summary = summarise(scored, trajectories, k=settings.k)
    if settings.price_in or settings.price_out:
        summary["cost"] = cost(trajectories, settings.price_in, settings.price_out)
    results = Results(
        name=settings.name or Path(settings.model).name,
        checkpoint=about,
        taskset={"path": str(taskset.root), "split": settings.filter.split, "hash": ground(rows)},
        harness=harness.record(),
        sampling={"k": settings.k, "temperature": harness.temperature, "seed": settings.seed},
        summary=summary,
        rows=scored,
    )
    results.write(out)
    return results


def faulted(out: Path) -> list[Trajectory]:
    """The rollouts that met a fault and were not done again since: each once, the last try."""
    file, finished = out / FAULTS, TrajectoryStore(out).ids()
    rows = (row for _, row in read_json_lines(file)) if file.is_file() else ()
    tried = {row["id"]: row for row in rows if row["id"] not in finished}
    return [Trajectory.from_dict(row) for row in tried.values()]


def rescore(out: Path, results: Results, tasks: Path) -> Results:
    """Judge the stored rollouts again with the tasks and the verifier as they are now; nothing is sampled.

    A stored diff that is clipped, binary or no longer applies can't be judged: a fault, counted in the summary."""
    taskset = Taskset.open(tasks)
    by_id = {row.id: row for row in taskset.rows}
    rows = [by_id[r.id] for r in results.rows if r.id in by_id]
    loaded = {t.id: t for t in taskset.tasks(rows)}
    verifier, judged = Verifier(), list[Trajectory]()
    stored = list(TrajectoryStore(out))
    with bar("rescore", len(stored)) as progress:
        for trajectory in stored:
            task = loaded.get(trajectory.task_id or "")
            if task and trajectory.stop and trajectory.stop.trains:
                trajectory.reward = _judge_again(verifier, task, trajectory.diff or "")
            judged.append(trajectory)
            progress.step()
    scored = score_tasks([facts(r) for r in rows], judged)
    summary = summarise(scored, judged, k=int(results.sampling["k"]))
    summary["rescored"] = sum(bool(t.reward and t.reward.value is not None) for t in judged)
    ground_now = {**results.taskset, "path": str(taskset.root), "hash": ground(rows)}
    again = replace(results, rows=scored, summary=summary, taskset=ground_now)
    again.write(out)
    return again


def _judge_again(verifier: Verifier, task: Task, diff: str) -> Reward:
    try:
        return verifier.verify(task, apply_patch(diff, task.workspace) if diff else Diff())
    except TaskError as error:
        return Reward(value=None, verdict=Verdict.FAULT, evidence=(f"stored diff: {error.message}",))


def chosen(tasks: Path, settings: EvalSettings) -> tuple[Taskset, list[Row]]:
    """Raises ConfigError when no task is left."""
    taskset = Taskset.open(tasks)
    rows = [row for row in taskset.rows if settings.filter(row)]
    if not rows:
        splits = sorted({row.split or "(none)" for row in taskset.rows})
        raise ConfigError(f"{tasks}: no task passes the filter", fix=f"its splits: {', '.join(splits)}; give --split")
    return taskset, rows[: settings.limit or None]


def facts(row: Row) -> TaskFacts:
    return TaskFacts(
        id=row.id,
        kind=row.kind,
        difficulty=row.difficulty,
        level=row.level,
        unit=row.unit,
        oracle=None if row.card is None else bool(row.card.get("ok")),
    )


def ground(rows: Sequence[Row]) -> str:
    """What was scored on: the ids and, where they were audited, the contents of the tasks."""
    lines = sorted(f"{r.id} {(r.card or {}).get('content', '')}" for r in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@contextmanager
def serving(settings: EvalSettings) -> Iterator[Served]:
    if _has_weights(settings):
        start = origin(settings.model, settings.harness, other_harness=True)
        harness, about = start.harness, _about(settings.model, start)
        opened = open_engine(replace(settings.engine, model=str(start.base)))
    else:
        start = None
        harness = own_harness(settings)
        about = {"model": settings.model, "engine": settings.engine.kind, "fingerprint": settings.model}
        opened = open_engine(replace(settings.engine, model=settings.model))
    if settings.temperature is not None:
        harness = replace(harness, temperature=settings.temperature)
    try:
        if start is not None and start.adapter is not None:
            opened.engine.load_adapter(start.adapter, 1)
        yield opened, harness, about
    finally:
        opened.close()


def _has_weights(settings: EvalSettings) -> bool:
    """Whether the model is one that we load, or a name that a server knows."""
    return settings.engine.kind in ("embedded", "vllm")


def own_harness(settings: EvalSettings) -> HarnessConfig:
    """The harness that was asked for, else the checkpoint's, else the default."""
    if settings.harness is not None:
        return settings.harness
    return origin(settings.model).harness if _has_weights(settings) else HarnessConfig()


def _about(model: str, start: Origin) -> dict[str, Any]:
    adapter = start.adapter / "adapter_model.safetensors" if start.adapter else None
    digest = hashlib.sha256(adapter.read_bytes()).hexdigest()[:12] if adapter else ""
    return {
        "model": model,
        "base": start.about.base_model,
        "kind": start.about.kind if start.is_checkpoint else "base",
        "step": start.about.step,
        "run": start.about.run,
        "fingerprint": f"{start.about.base}{digest}",
    }


def cost(trajectories: Sequence[Trajectory], price_in: float, price_out: float) -> dict[str, float]:
    """What the rollouts cost at these prices; a prompt is counted with every call."""
    prompt = sum(t.counts.get("prompt_tokens", 0) for t in trajectories)
    sampled = sum(t.counts.get("sampled_tokens", 0) for t in trajectories)
    total = (prompt * price_in + sampled * price_out) / 1e6
    return {"prompt_tokens": prompt, "sampled_tokens": sampled, "total": total}
