"""`inloop grpo`: learn from passing hidden tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from inloop import config as toml
from inloop.cli import console
from inloop.sandbox.backends import open_backend
from inloop.train.grpo_config import GrpoConfig

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    grpo: GrpoConfig


@app.command()
def grpo(
    recipe: Annotated[Path, typer.Argument(help="TOML with a [grpo] table.")],
    out: Annotated[Path, typer.Option(help="Run folder.")],
    overrides: Annotated[list[str] | None, typer.Option("--set", help="a.b=value, over the recipe.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in --out.")] = False,
    canaries: Annotated[
        Path | None, typer.Option(help="Taskset of decoys, mixed in at grpo.curriculum.canary_rate.")
    ] = None,
    allow_unaudited_tasks: Annotated[
        bool, typer.Option("--allow-unaudited-tasks", help="Train on tasks without a card.")
    ] = False,
    force: Annotated[bool, typer.Option(help="Start although the advisor finds no signal.")] = False,
    sandbox: Annotated[str, typer.Option(help="bubblewrap, docker or unisolated-process.")] = "bubblewrap",
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Asynchronous GRPO over TRL; ends with the receipt."""
    console.quieten(json)
    from inloop.train.grpo import quiet_libraries, run_grpo

    quiet_libraries()
    settings = toml.load(Recipe, recipe, overrides or ()).grpo
    result = run_grpo(
        settings,
        out,
        backend=open_backend(sandbox),
        resume=resume,
        allow_unaudited=allow_unaudited_tasks,
        canaries=canaries,
        force=force,
    )
    if json:
        console.emit(asdict(result))
        return
    if result.stopped:
        console.out.print(f"stopped early: {result.stopped}")
    console.out.print(result.line, highlight=False)
    console.closing(
        f"{result.best} (best), {result.last}, {result.receipt}",
        f"inloop eval {result.best} --tasks {settings.tasks} --split test --out {out / 'eval'}",
    )
