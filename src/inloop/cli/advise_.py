"""`inloop advise`: would RL have a signal?"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from inloop.cli import console
from inloop.sandbox.backends import open_backend
from inloop.tasks.taskset import Taskset
from inloop.train.grpo_config import GrpoConfig

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def advise(
    model: Annotated[str, typer.Argument(help="A checkpoint folder, a model folder, or a name.")],
    tasks: Annotated[Path, typer.Option(help="Taskset.")],
    out: Annotated[Path, typer.Option(help="Folder for the pilot's rollouts.")],
    split: Annotated[str, typer.Option(help="Split to sample tasks from.")] = "train",
    limit: Annotated[int, typer.Option(help="Tasks of the pilot.")] = 32,
    k: Annotated[int, typer.Option(help="Rollouts a task.")] = 4,
    seed: Annotated[int, typer.Option(help="Chooses the tasks and seeds the rollouts.")] = 0,
    sandbox: Annotated[str, typer.Option(help="bubblewrap, docker or unisolated-process.")] = "bubblewrap",
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Sample k rollouts a task; exit 1 when there is no signal."""
    console.quieten(json)
    from inloop.train.grpo import quiet_libraries
    from inloop.train.grpo_start import start_engine
    from inloop.train.origin import origin
    from inloop.train.pilot import NAME, pilot

    quiet_libraries()
    config = GrpoConfig(model=model, tasks=tasks, split=split, seed=seed)
    taskset = Taskset.open(tasks)
    rows = [r for r in taskset.rows if r.split == split]
    rows = random.Random(seed).sample(rows, min(limit, len(rows)))
    start = origin(model)
    opened = start_engine(config.engine, start)
    engine = opened.engine
    try:
        if start.adapter:
            engine.load_adapter(start.adapter, 0)
        advice = pilot(
            list(taskset.tasks(rows)),
            engine,
            start.tokenizer,
            start.harness,
            out,
            backend=open_backend(sandbox),
            rewards=config.rewards,
            samples=k,
            concurrency=config.concurrency,
            seed=seed,
        )
    finally:
        opened.close()
    if json:
        console.emit(advice.to_dict())
    else:
        table = Table("passes in a group", "groups", title=f"{advice.tasks} groups of {advice.k}")
        for passes, groups in advice.histogram.items():
            table.add_row(str(passes), str(groups))
        console.out.print(table)
        console.out.print(advice.sentence, highlight=False)
        console.out.print(f"{advice.mixed_groups_per_hour:.0f} mixed groups an hour expected", highlight=False)
        console.closing(str(out / NAME), f"inloop grpo RECIPE --out RUN --set grpo.model={model}")
    raise typer.Exit(0 if advice.has_signal else 1)
