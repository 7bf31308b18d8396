"""GRPO: rollouts in one process, sampling in another, TRL's asynchronous trainer in this one, and a receipt."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inloop.engine.base import Engine
from inloop.progress import bar
from inloop.sandbox.base import Backend
from inloop.sandbox.lease import clean, leases
from inloop.tasks.taskset import Row, Taskset
from inloop.train.group_source import GroupSource
from inloop.train.group_worker import WorkerSpec
from inloop.train.grpo_config import GrpoConfig
from inloop.train.pilot import pilot, require_signal
from inloop.train.receipt import NAME as RECEIPT
from inloop.train.receipt import Receipt
from inloop.train.run_folder import RunFolder, open_run

PROBE = "def add(a, b):\n    return a + b\n\n\nprint(add(2, 3))"
"""What the engine continues after every hand-over of weights, to show that it serves them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpoResult:
    run: Path
    steps: int
    best: Path
    last: Path
    receipt: Path
    stopped: str
    """Why it ended before its steps; '' if it did not."""
    line: str
    """The receipt in one line."""
    seconds: float


def run_grpo(
    config: GrpoConfig,
    out: Path,
    *,
    backend: Backend,
    resume: bool = False,
    allow_unaudited: bool = False,
    engine: Engine | None = None,
    canaries: Path | None = None,
    force: bool = False,
) -> GrpoResult:
    """Train in `out`; with `resume`, go on from its last state. `engine` is used instead of starting one.

    Raises DataError when the receipt does not hold; what was trained is kept in any case."""
    from inloop.train import grpo_start
    from inloop.train.origin import origin

    config = grpo_start.with_dtype(config)
    train, held_out = grpo_start.chosen_tasks(config, allow_unaudited=allow_unaudited)
    start = origin(config.model, config.harness)
    with open_run(out, config, what="inloop grpo", resume=resume) as folder:
        opened = None if engine else grpo_start.start_engine(config.engine, start)
        engine = engine or (opened.engine if opened else None)
        assert engine is not None
        try:
            grpo_start.check_engine(engine, start, config)
            if config.advise_tasks and last_state(folder) is None:
                _advised(config, folder, start, engine, backend, train, force=force)
            spec = _worker_spec(config, folder, start, engine, backend, train, held_out, canaries)
            result = _train(config, folder, start, engine, spec)
        finally:
            if opened:
                opened.close()
    return result


def _advised(
    config: GrpoConfig,
    folder: RunFolder,
    start: Any,
    engine: Engine,
    backend: Backend,
    train: Sequence[Row],
    *,
    force: bool,
) -> None:
    """The advisor's pilot goes before every run; its rollouts are kept in `advice/`."""
    taskset = Taskset.open(config.tasks)
    rows = random.Random(config.seed).sample(list(train), min(config.advise_tasks, len(train)))
    if start.adapter:
        engine.load_adapter(start.adapter, 0)
    advice = pilot(
        list(taskset.tasks(rows)),
        engine,
        start.tokenizer,
        start.harness,
        folder.root / "advice",
        backend=backend,
        rewards=config.rewards,
        samples=config.advise_samples,
        concurrency=config.concurrency,
        seed=config.seed,
    )
    folder.event("advice", step=advice.step, sentence=advice.sentence)
    require_signal(advice, force=force)


def _worker_spec(
    config: GrpoConfig,
    folder: RunFolder,
    start: Any,
    engine: Engine,
    backend: Backend,
    train: Sequence[Row],
    held_out: Sequence[Row],
    canaries: Path | None,
) -> WorkerSpec:
    return WorkerSpec(
        folder=folder.root,
        tasks=config.tasks,
        task_ids=tuple(r.id for r in train),
        held_out_ids=tuple(r.id for r in held_out),
        held_out_samples=config.held_out.samples,
        canaries=canaries,
        engine=engine,
        backend=backend,
        tokenizer=start.tokenizer,
        harness=start.harness,
        rewards=config.rewards,
        group_size=config.group_size,
        samples_per_step=config.samples_per_step,
        max_staleness=config.max_staleness,
        concurrency=config.concurrency,
        scale=config.scale,
        weigh=config.weigh,
        seed=config.seed,
        uniform=config.curriculum.order == "uniform",
        canary_rate=config.curriculum.canary_rate,
        settled=tuple(_settled(folder)),
    )


def last_state(folder: RunFolder) -> Path | None:
    """The newest checkpoint of the trainer that also holds the rollout side's state."""
    from inloop.train.grpo_watch import STATE

    found = sorted(folder.state.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2]))
    return next((p for p in reversed(found) if (p / STATE).is_file()), None)


def _settled(folder: RunFolder) -> list[int]:
    from inloop.train.grpo_watch import STATE

    state = last_state(folder)
    settled: list[int] = json.loads((state / STATE).read_text())["settled"] if state else []
    return settled


def _train(config: GrpoConfig, folder: RunFolder, start: Any, engine: Engine, spec: WorkerSpec) -> GrpoResult:
    from inloop.data.tokens import load_tokenizer
    from inloop.train.grpo_start import make_trainer
    from inloop.train.grpo_watch import Watch

    began = time.monotonic()
    receipt = Receipt(dtype=config.dtype, thresholds=config.receipt)
    with bar("grpo", config.steps) as progress:
        watch = Watch(config, folder, receipt, start.about, progress)
        source = GroupSource(spec, receipt, max_staleness=config.max_staleness, on_group=watch.on_group)
        try:
            trainer = make_trainer(
                config,
                start,
                folder,
                engine,
                source,
                groups=len(spec.task_ids),
                callbacks=[watch],
                on_ratio=watch.on_ratio,
                on_sync=watch.on_sync,
            )
            watch.attach(trainer, source, engine, load_tokenizer(start.tokenizer)(PROBE)["input_ids"])
            state = last_state(folder)
            if state:
                trainer.model_version = watch.restore(state)["version"] - 1  # the cold hand-over counts one up
            trainer.train(resume_from_checkpoint=str(state) if state else None)
            watch.write(folder.last, {"reward": watch.reward()})
            if not (folder.best / "inloop.json").exists():
                watch.write(folder.best, {"reward": watch.reward()})
        finally:
            source.stop()
            receipt.leaks = _leaks(spec)
            receipt.took("total", time.monotonic() - began)
            receipt.write(folder.root)
    folder.event("done", steps=trainer.state.global_step, stopped=watch.stopped, receipt=receipt.line())
    result = GrpoResult(
        run=folder.root,
        steps=trainer.state.global_step,
        best=folder.best,
        last=folder.last,
        receipt=folder.root / RECEIPT,
        stopped=watch.stopped,
        line=receipt.line(),
        seconds=time.monotonic() - began,
    )
    receipt.check()
    return result


def _leaks(spec: WorkerSpec) -> int:
    """Sandboxes of this run that are still open after its rollout process has gone; the janitor removes them."""
    left = sum(lease.owner == spec.owner() for lease in leases())
    if left:
        clean()
    return left


def quiet_libraries() -> None:
    """Progress is ours; what transformers and TRL print on a terminal is noise there."""
    import logging
    import warnings

    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    for name in ("transformers", "trl", "peft", "accelerate"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"(transformers|trl|peft|accelerate|torch)\b.*")
