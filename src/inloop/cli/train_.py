"""`inloop train`: the stages that a recipe names."""

from __future__ import annotations

from pathlib import Path

import typer

from inloop.cli import console
from inloop.cli.stages import show
from inloop.config import dump, load
from inloop.recipe.config import Recipe
from inloop.recipe.run import RecipeRun
from inloop.sandbox.backends import open_backend

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    recipe: Path = typer.Argument(..., help="TOML; `recipes/` has some."),
    to: Path = typer.Option(..., "--out", help="Run folder; the same command goes on with what is in it."),
    sets: list[str] = typer.Option([], "--set", help="One value, such as grpo.steps=20. Can be repeated."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print the resolved recipe and run nothing."),
    force: bool = typer.Option(False, help="Start GRPO although the advisor finds no signal."),
    sandbox: str = typer.Option("bubblewrap", help="bubblewrap, docker or unisolated-process."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Run them in order; what is done is not done again."""
    console.quieten(json)
    settings = load(Recipe, recipe, sets).resolved()
    if dry_run:
        print(dump(settings))
        return
    backend = open_backend(sandbox)
    backend.probe()
    summary = RecipeRun(settings, to, backend, force=force).run()
    show(summary, json)
