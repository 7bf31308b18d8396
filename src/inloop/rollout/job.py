"""`inloop collect` as a function: from a folder of tasks and the settings to a ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inloop import files
from inloop.config import load, save
from inloop.errors import ConfigError, TaskError
from inloop.harness.capture import CaptureGateway
from inloop.harness.config import HarnessConfig
from inloop.harness.external import External
from inloop.harness.mini_swe_agent import MiniSweAgent
from inloop.rollout.collect import Plan, Run, collect
from inloop.rollout.engines import EngineConfig, Opened, open_engine
from inloop.rollout.run import Rollouts
from inloop.rollout.summary import Summary
from inloop.rollout.workers import Recipe, processes, ray_cluster
from inloop.sandbox.backends import DEFAULT, open_backend
from inloop.tasks.task import Task
from inloop.tasks.taskset import Filter, Taskset

AGENTS = {"mini-swe-agent": MiniSweAgent}


@dataclass(frozen=True, kw_only=True)
class CollectSettings:
    engine: EngineConfig = field(default_factory=EngineConfig)
    harness: HarnessConfig = field(default_factory=HarnessConfig)
    plan: Plan = field(default_factory=Plan)
    filter: Filter = field(default_factory=Filter)
    """Which tasks of the set: split, kind, id, ... as globs."""
    limit: int = 0
    """At most so many tasks, the first ones; 0 takes all."""
    agent: str = ""
    """An agent with a loop of its own, unmodified, behind the capture proxy: 'mini-swe-agent'. Empty is ours."""
    sandbox: str = DEFAULT
    """'bubblewrap', 'docker' or 'unisolated-process'; nothing falls back in silence."""
    image: str = ""
    """docker: the image that all tasks run in."""
    retries: int = 3
    """Of an infrastructure fault."""
    processes: int = 0
    """Spread the rollouts over so many processes; 0 uses threads of this one."""
    ray: str = ""
    """Address of a Ray cluster to spread them over; 'local' starts one here."""


def settings_from(config: Path | None, harness: Path | None, overrides: Sequence[str]) -> CollectSettings:
    """The settings of a file, with the harness of another one where it is given, and `a.b=value` overrides on top."""
    if harness is None:
        return load(CollectSettings, config, overrides)
    own = [o.removeprefix("harness.") for o in overrides if o.startswith("harness.")]
    rest = [o for o in overrides if not o.startswith("harness.")]
    return replace(load(CollectSettings, config, rest), harness=load(HarnessConfig, harness, own))


def run_collect(tasks: Path, out: Path, settings: CollectSettings) -> Summary:
    """Collect into `out`, or go on with what is there. Raises InloopError with the fix."""
    if settings.processes and settings.ray:
        raise ConfigError("both --processes and --ray are given", fix="choose one of them")
    if settings.agent and (settings.processes or settings.ray):
        raise ConfigError("an agent's capture proxy is of this process", fix="leave --processes and --ray out")
    chosen = choose(tasks, settings.filter, settings.limit)
    with files.locked(out, "inloop collect"):  # told before the engine has loaded anything
        pass
    open_backend(settings.sandbox, image=settings.image).probe()
    opened = open_engine(settings.engine, chosen)
    try:
        recipe = Recipe(
            engine=opened.engine,
            config=settings.harness,
            tokenizer=opened.tokenizer,
            sandbox=settings.sandbox,
            image=settings.image,
            retries=settings.retries,
            owner=str(out),
            meta={"run": str(out)},
        )
        with (
            _agent(settings, opened) as external,
            _runner(settings, recipe, opened.shared, replace(recipe.build(), external=external)) as (here, run),
        ):
            save(settings, out / "config.toml")
            return collect(chosen, run, settings.plan, out, scope=here.scope(), identity=_identity(settings))
    finally:
        opened.close()


@contextlib.contextmanager
def _agent(settings: CollectSettings, opened: Opened) -> Iterator[External | None]:
    """The outside agent and its proxy; None where our own loop runs."""
    if not settings.agent:
        yield None
        return
    if settings.agent not in AGENTS:
        raise ConfigError(f"unknown agent {settings.agent!r}", fix=f"known: {', '.join(AGENTS)}")
    if not opened.tokenizer:
        raise ConfigError(
            f"the {settings.engine.kind} engine speaks messages; what an agent is told is captured in tokens",
            fix="use --engine embedded or vllm, or give engine.tokenizer",
        )
    agent = AGENTS[settings.agent]()
    agent.folders()  # installed before the first sandbox waits for it
    config = settings.harness
    gateway = CaptureGateway(
        opened.engine,
        Path(opened.tokenizer),
        temperature=config.temperature,
        max_turn_tokens=config.max_turn_tokens,
    )
    try:
        yield External(agent=agent, gateway=gateway)
    finally:
        gateway.close()


def choose(root: Path, narrow: Filter, limit: int = 0) -> list[Task]:
    """The tasks of a set that pass a filter. Raises TaskError when none does."""
    taskset = Taskset.open(root)
    rows = [row for row in taskset.rows if narrow(row)]
    if not rows:
        splits = sorted({row.split or "(none)" for row in taskset.rows})
        raise TaskError(f"{root}: no task passes the filter", fix=f"its splits: {', '.join(splits)}")
    return list(taskset.tasks(rows[: limit or None]))


@contextlib.contextmanager
def _runner(settings: CollectSettings, recipe: Recipe, shared: Any, here: Rollouts) -> Iterator[tuple[Rollouts, Run]]:
    recipe = replace(recipe, engine=shared)
    if settings.processes:
        with processes(recipe, settings.processes) as run:
            yield here, run
    elif settings.ray:
        with ray_cluster(recipe, settings.ray, settings.plan.width()) as run:
            yield here, run
    else:
        yield here, here.run


def _identity(settings: CollectSettings) -> dict[str, Any]:
    """What a resumed run must have in common with the one before."""
    return {"engine": settings.engine.kind, "model": settings.engine.model, "harness": settings.harness.record()} | (
        {"agent": settings.agent} if settings.agent else {}
    )
