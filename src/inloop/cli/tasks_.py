"""`inloop tasks list | show | stats | split | overlap | index`; `check` and `build` are in `tasks_build`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import typer
import typer.core
import typer.main

from inloop.cli.console import closing, emit, out, quieten
from inloop.cli.tasks_show import print_rows, print_stats, print_task, row_json, task_json
from inloop.errors import TaskError
from inloop.tasks.overlap import THRESHOLD, decontaminate, evaluation_documents
from inloop.tasks.splits import BLOCKED, By, assign, check_disjoint, parse_shares
from inloop.tasks.stats import stats
from inloop.tasks.taskset import INDEX, Filter, Taskset

LATER = ("build", "check")


class LazyTasks(typer.core.TyperGroup):
    """Builders and audits need the sandbox and the verifier; listing must not wait for their imports."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *LATER]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in LATER:
            return super().get_command(ctx, cmd_name)
        group: Any = typer.main.get_command(importlib.import_module("inloop.cli.tasks_build").app)
        return group.get_command(ctx, cmd_name)


app = typer.Typer(cls=LazyTasks, no_args_is_help=True)

FOLDER = typer.Argument(help="A taskset, or a single task folder.")
JSON = typer.Option(False, "--json", help="One JSON document on stdout.")


@app.command("list")
def list_(
    folder: Path = FOLDER,
    id: str = typer.Option("", "--id", help="Glob, as are the others."),
    kind: str = typer.Option("", "--kind"),
    split: str = typer.Option("", "--split"),
    builder: str = typer.Option("", "--builder"),
    repository: str = typer.Option("", "--repository"),
    unit: str = typer.Option("", "--unit"),
    audited: bool | None = typer.Option(None, "--audited/--unaudited", help="With or without a passed audit."),
    min_difficulty: float | None = typer.Option(None, "--min-difficulty", min=0, max=1),
    max_difficulty: float | None = typer.Option(None, "--max-difficulty", min=0, max=1),
    limit: int | None = typer.Option(None, "--limit", min=1, help="Rows to print."),
    json: bool = JSON,
) -> None:
    """List the tasks of a set; all filters have to hold."""
    quieten(json)
    wanted = Filter(
        id=id, kind=kind, split=split, builder=builder, repository=repository, unit=unit, audited=audited,
        min_difficulty=min_difficulty, max_difficulty=max_difficulty,
    )  # fmt: skip
    rows = [r for r in Taskset.open(folder).rows if wanted(r)]
    if json:
        emit([row_json(r) for r in rows[:limit]])
    else:
        print_rows(rows, limit)


@app.command()
def show(
    folder: Path = FOLDER,
    task_id: str = typer.Argument("", help="Which task; not needed for a task folder."),
    patch: bool = typer.Option(False, "--patch", help="Print the solution too."),
    json: bool = JSON,
) -> None:
    """Show one task: instruction, card, provenance, files."""
    quieten(json)
    tasks = Taskset.open(folder)
    if not task_id and len(tasks.rows) != 1:
        raise TaskError(f"{folder} holds {len(tasks.rows)} tasks", fix=f"inloop tasks show {folder} TASK_ID")
    task = tasks.task(task_id or tasks.rows[0].id)
    if json:
        emit(task_json(task, patch))
    else:
        print_task(task, patch)


@app.command("stats")
def stats_(folder: Path = FOLDER, json: bool = JSON) -> None:
    """Count kinds, splits and sources; show lengths, sizes and difficulty."""
    quieten(json)
    found = stats(Taskset.open(folder).rows)
    if json:
        emit(found)
    else:
        print_stats(found)


@app.command()
def split(
    folder: Path = FOLDER,
    shares: str = typer.Option("train=0.8,test=0.2", "--shares", help="Names and shares that sum to 1."),
    by: str = typer.Option("function", "--by", help="What is never divided: function, file, commit or repository."),
    seed: int = typer.Option(0, "--seed"),
    reset: bool = typer.Option(False, "--reset", help="Forget the splits that units have."),
    json: bool = JSON,
) -> None:
    """Assign splits by source unit and prove them disjoint."""
    quieten(json)
    tasks, unit = Taskset.open(folder), _by(by)
    tasks.assign(assign(tasks.rows, parse_shares(shares), by=unit, seed=seed, reset=reset))
    counts = check_disjoint(Taskset.open(folder).rows, unit)
    if json:
        emit({"by": by, "seed": seed, "splits": dict(counts)})
    else:
        out.print(f"disjoint by {by}: " + ", ".join(f"{n} {name}" for name, n in sorted(counts.items())))
    closing(str(folder / INDEX), f"inloop tasks overlap {folder}")


def _by(name: str) -> By:
    if name not in ("function", "file", "commit", "repository"):
        raise TaskError(f"can't split by '{name}'", fix="function, file, commit or repository")
    return name  # type: ignore[return-value]


@app.command()
def overlap(
    folder: Path = FOLDER,
    against: list[Path] = typer.Option([], "--against", help="An evaluation set: a taskset or a JSONL file."),
    scope: str = typer.Option("unit", "--scope", help="Code compared across splits: unit, or the whole workspace."),
    held_out: str = typer.Option("test", "--held-out", help="The split that must not be seen in training."),
    threshold: float = typer.Option(THRESHOLD, "--threshold", min=0.05, max=1),
    block: bool = typer.Option(False, "--block", help="Move what overlaps to the split 'blocked'."),
    json: bool = JSON,
) -> None:
    """Compare splits with each other and with evaluation sets. Exit code 1 when something overlaps and stays."""
    quieten(json)
    if scope not in ("unit", "workspace"):
        raise TaskError(f"no scope '{scope}'", fix="unit or workspace")
    tasks = Taskset.open(folder)
    evaluation = [d for path in against for d in evaluation_documents(path)]
    found = decontaminate(tasks.tasks(), evaluation, scope=scope, held_out=held_out, threshold=threshold)  # type: ignore[arg-type]
    if block and found.blocked:
        tasks.assign(dict.fromkeys(found.blocked, BLOCKED))
    if json:
        emit({"overlaps": len(found.overlaps), "blocked": found.blocked, "counts": dict(found.counts)})
    else:
        for task_id, reason in list(found.blocked.items())[:20]:
            out.print(f"  {task_id}: {reason}", highlight=False, soft_wrap=True)
        out.print(f"{len(found.blocked)} of {len(tasks.rows)} tasks overlap", highlight=False)
    closing(
        "splits" if block else "nothing", "" if block or not found.blocked else f"inloop tasks overlap {folder} --block"
    )
    raise typer.Exit(1 if found.blocked and not block else 0)


@app.command()
def index(folder: Path = FOLDER, json: bool = JSON) -> None:
    """Write the index again from the task folders."""
    quieten(json)
    found = Taskset.scan(folder)
    found.save()
    if json:
        emit({"tasks": len(found.rows)})
    closing(f"{folder / INDEX}: {len(found.rows)} tasks", f"inloop tasks stats {folder}")
