"""`inloop tasks check` and `inloop tasks build ...`."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import typer

from inloop.build.audit import Auditor, Checked, check_all, reasons_table
from inloop.build.builders import build_functions
from inloop.build.commits import build_commits
from inloop.build.decoys import build_decoys
from inloop.build.imports import import_tasks
from inloop.build.run import Report
from inloop.build.sessions import SessionSource, build_sessions
from inloop.cli.console import closing, emit, out, quieten
from inloop.cli.tasks_show import print_report
from inloop.errors import TaskError
from inloop.progress import bar
from inloop.tasks.splits import check_disjoint
from inloop.tasks.stats import stats
from inloop.tasks.taskset import INDEX, Taskset
from inloop.trace.redact.apply import Redactor
from inloop.trace.redact.find import load_salt

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


@build_app.command("decoys")
def decoys(
    taskset: Path = typer.Argument(help="A starter set, whose training tasks they are made of."),
    folder: Path = OUT,
    n: int = typer.Option(16, "--n", min=1, help="Decoys to make."),
    seed: int = SEED,
    workers: int = WORKERS,
    json: bool = JSON,
) -> None:
    """Tasks that only cheating passes, for `inloop grpo --canaries`."""
    quieten(json)
    built = build_decoys(taskset, folder, n, seed=seed, workers=workers)
    if json:
        emit({"out": str(folder), "tasks": [t.id for t in built.tasks], "dropped": dict(built.dropped)})
    else:
        for reason, count in built.dropped.items():
            out.print(f"  {count:>6}  dropped: {reason}", highlight=False)
    closing(f"{len(built.tasks)} decoys in {folder}", f"inloop grpo RECIPE --canaries {folder} --out RUN")
    raise typer.Exit(0 if built.tasks else 1)


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


@build_app.command("sessions")
def sessions(
    paths: list[Path] = typer.Argument(help="Sessions in any format that `inloop traces import` reads, or a ledger."),
    repo: str = typer.Option(..., "--repo", help="The git repository that they were held in, or its URL."),
    folder: Path = OUT,
    commit: str = typer.Option("", "--commit", help="Where sessions began that recorded no commit."),
    n: int = typer.Option(1000, "--n", min=1, help="Tasks to make at most."),
    seed: int = SEED,
    workers: int = WORKERS,
    redact: bool = typer.Option(True, "--redact/--no-redact", help="Cut secrets and names out first."),
    salt: Path | None = typer.Option(None, "--salt", help="File that keeps placeholders stable; default: your own."),
    no_audit: bool = NO_AUDIT,
    json: bool = JSON,
) -> None:
    """Sessions that ended with passing tests; what can't be verified is counted and stays trace data."""
    quieten(json)
    source = SessionSource(repo=repo, commit=commit, redactor=Redactor(load_salt(salt)) if redact else None)
    _built(build_sessions(paths, source, folder, n, seed=seed, workers=workers, audit=not no_audit), json)


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
