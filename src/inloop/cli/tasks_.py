"""`inloop tasks list | show | stats | split | check | overlap | index | build ...`."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import typer

from inloop.build.audit import Auditor, Checked, check_all, reasons_table
from inloop.build.builders import build_functions
from inloop.build.commits import build_commits
from inloop.build.imports import import_tasks
from inloop.build.run import Report
from inloop.cli.console import closing, emit, out, quieten
from inloop.cli.tasks_show import print_report, print_rows, print_stats, print_task, row_json, task_json
from inloop.errors import TaskError
from inloop.progress import bar
from inloop.tasks.overlap import THRESHOLD, decontaminate, evaluation_documents
from inloop.tasks.splits import BLOCKED, By, assign, check_disjoint, parse_shares
from inloop.tasks.stats import stats
from inloop.tasks.taskset import INDEX, Filter, Taskset

app = typer.Typer(no_args_is_help=True)
build_app = typer.Typer(no_args_is_help=True, help="Make tasks from a repository, its history, or other sets.")
app.add_typer(build_app, name="build")

FOLDER = typer.Argument(help="A taskset, or a single task folder.")
SOURCE = typer.Argument(help="A folder, a git repository or URL, or pypi:NAME[==VERSION].")
JSON = typer.Option(False, "--json", help="One JSON document on stdout.")
OUT = typer.Option(..., "--out", help="Folder of the taskset; an interrupted build goes on there.")
COUNT = typer.Option(50, "--n", min=1, help="Tasks to make.")
SEED = typer.Option(0, "--seed", help="Decides the candidates and their order.")
WORKERS = typer.Option(2, "--workers", min=1, help="Sandboxes at a time.")
NO_AUDIT = typer.Option(False, "--no-audit", help="Write tasks without a card; training refuses them.")


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
def check(
    folder: Path = FOLDER,
    workers: int = WORKERS,
    force: bool = typer.Option(False, "--force", help="Audit again what has a card for its content."),
    json: bool = JSON,
) -> None:
    """Audit every task and write its card. Exit code 1 when one fails."""
    quieten(json)
    tasks = Taskset.open(folder)
    loaded = list(tasks.tasks())
    checked: list[Checked] = []
    try:
        with bar("audit", len(loaded)) as progress:
            for result in check_all(Auditor(), loaded, workers=workers, force=force):
                checked.append(result)
                progress.step(note=f"{sum(1 for c in checked if c.reason)} failed")
    finally:
        done = [c.task for c in checked if c.task is not None and not c.cached]
        if done and (folder / INDEX).is_file():
            tasks.refresh(done)
    _print_check(folder, checked, json)


def _print_check(folder: Path, checked: list[Checked], json: bool) -> None:
    bad = [c for c in checked if c.reason]
    reasons = reasons_table(checked)
    ceiling = 1 - len(bad) / len(checked) if checked else 0.0
    if json:
        emit(
            {
                "tasks": len(checked),
                "ok": len(checked) - len(bad),
                "ceiling": ceiling,
                "cached": sum(c.cached for c in checked),
                "reasons": dict(reasons),
                "failed": {c.id: c.reason for c in bad},
            }
        )
    else:
        out.print(f"ceiling {ceiling:.1%}: {len(checked) - len(bad)} of {len(checked)} tasks have a valid card")
        for reason, count in reasons.most_common():
            out.print(f"  {count:>6}  {reason}", highlight=False)
        for item in bad[:20]:
            out.print(f"  {item.id}: {item.reason}", highlight=False, soft_wrap=True)
    closing(f"cards in {folder}", f"inloop tasks stats {folder}")
    raise typer.Exit(1 if bad else 0)


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


def _built(report: Report, json: bool) -> None:
    if json:
        emit(report.as_json())
    else:
        print_report(report)
    closing(f"{len(report.kept)} tasks in {report.out}", f"inloop tasks split {report.out}")
    raise typer.Exit(0 if report.kept else 1)


@build_app.command("mutate")
def mutate(
    source: str = SOURCE,
    folder: Path = OUT,
    n: int = COUNT,
    seed: int = SEED,
    kinds: list[str] = typer.Option([], "--kind", help="Only this kind of mutation. Can be repeated."),
    per_unit: int = typer.Option(4, "--per-function", min=1, help="Tasks of one function at most."),
    workers: int = WORKERS,
    no_audit: bool = NO_AUDIT,
    json: bool = JSON,
) -> None:
    """Put bugs into functions that the repository's own tests cover."""
    quieten(json)
    _built(
        build_functions(
            "mutate", source, folder, n, seed=seed, kinds=kinds, per_unit=per_unit, workers=workers, audit=not no_audit
        ),
        json,
    )


@build_app.command("stub")
def stub(
    source: str = SOURCE,
    folder: Path = OUT,
    n: int = COUNT,
    seed: int = SEED,
    workers: int = WORKERS,
    no_audit: bool = NO_AUDIT,
    json: bool = JSON,
) -> None:
    """Take out function bodies; signature and docstring stay."""
    quieten(json)
    _built(build_functions("stub", source, folder, n, seed=seed, workers=workers, audit=not no_audit), json)


@build_app.command("commits")
def commits(
    source: str = typer.Argument(help="A git repository with its history, or a git URL."),
    folder: Path = OUT,
    n: int = COUNT,
    seed: int = SEED,
    limit: int = typer.Option(2000, "--limit", min=1, help="Commits to look at, newest first."),
    workers: int = WORKERS,
    no_audit: bool = NO_AUDIT,
    json: bool = JSON,
) -> None:
    """Mine a git history for commits whose tests fail before and pass after."""
    quieten(json)
    _built(build_commits(source, folder, n, seed=seed, limit=limit, workers=workers, audit=not no_audit), json)


@build_app.command("import")
def import_(
    source: Path = typer.Argument(help="A .jsonl or .parquet file of rows, or a folder of Harbor tasks."),
    folder: Path = OUT,
    repos: Path | None = typer.Option(None, "--repos", help="Folder of clones (owner__name) to build SWE rows from."),
    limit: int | None = typer.Option(None, "--limit", min=1, help="Rows to read."),
    seed: int = SEED,
    no_audit: bool = NO_AUDIT,
    json: bool = JSON,
) -> None:
    """SWE-bench, HumanEval and MBPP shaped rows, or Harbor folders."""
    quieten(json)
    _built(import_tasks(source, folder, repos=repos, limit=limit, seed=seed, audit=not no_audit), json)


@build_app.command("starter")
def starter(folder: Path = OUT, n: int = COUNT, seed: int = SEED, json: bool = JSON) -> None:
    """The bundled library of small functions, broken in many ways under many names."""
    quieten(json)
    if not importlib.util.find_spec("inloop.build.starter.builder"):
        raise TaskError("this installation has no starter set", fix="install inloop from its repository")
    built = importlib.import_module("inloop.build.starter.builder").build_starter(folder, n, seed)
    found = Taskset.scan(folder)
    found.save()
    check_disjoint(found.rows)
    if json:
        emit({"out": str(folder), "kept": len(built.tasks), "drops": dict(built.dropped), "stats": stats(found.rows)})
    else:
        for reason, count in built.dropped.most_common():
            out.print(f"  {count:>6}  dropped: {reason}", highlight=False)
    closing(f"{len(built.tasks)} tasks in {folder}", f"inloop tasks check {folder}")
