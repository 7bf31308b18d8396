"""The advisor's pilot: k rollouts on a few tasks with the run's own harness and engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from inloop.data.tokens import load_tokenizer
from inloop.engine.base import Engine
from inloop.errors import DataError
from inloop.files import write_json
from inloop.harness.config import HarnessConfig
from inloop.harness.policy import make_policy
from inloop.rollout.collect import Plan, collect
from inloop.rollout.run import Rollouts
from inloop.sandbox.base import Backend
from inloop.tasks.task import Task
from inloop.trace.store import TrajectoryStore
from inloop.train.advise import Advice, advise
from inloop.train.groups import RewardConfig
from inloop.verify.verifier import Verifier

NAME = "advice.json"


def pilot(
    tasks: Sequence[Task],
    engine: Engine,
    tokenizer: Path,
    harness: HarnessConfig,
    out: Path,
    *,
    backend: Backend,
    rewards: RewardConfig,
    samples: int,
    concurrency: int,
    seed: int,
) -> Advice:
    """Collect `samples` rollouts of each task into `out` and read them; writes `advice.json`."""
    rollouts = Rollouts(
        policy=make_policy(engine, harness, load_tokenizer(tokenizer)),
        config=harness,
        backend=backend,
        judge=Verifier(),
        owner=f"advise {out}",
        meta={"run": str(out)},
    )
    began = time.monotonic()
    plan = Plan(k=samples, seed=seed, concurrency=concurrency)
    identity = {"tasks": sorted(t.id for t in tasks), "harness": harness.hash()}
    collect(tasks, rollouts.run, plan, out, scope=rollouts.scope(), identity=identity)
    advice = advise(
        TrajectoryStore(out), seconds=time.monotonic() - began, rewards=rewards, max_turns=harness.max_turns
    )
    write_json(out / NAME, advice.to_dict() | {"harness": asdict(harness)})
    return advice


def require_signal(advice: Advice, *, force: bool) -> None:
    """Raises DataError when RL would have nothing to learn from."""
    if not advice.has_signal and not force:
        raise DataError(
            f"no signal for RL: {advice.sentence}",
            fix="follow the advice, or add --force to spend the compute all the same",
        )
