"""`inloop quickstart`: the main job with the embedded model."""

from __future__ import annotations

from pathlib import Path

import typer

from inloop.cli import console
from inloop.cli.stages import show
from inloop.recipe.config import load_recipe
from inloop.recipe.run import RecipeRun
from inloop.sandbox.backends import open_backend

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    to: Path = typer.Option(Path("runs/quickstart"), "--out", help="Run folder; goes on with what is in it."),
    fast: bool = typer.Option(False, "--fast", help="A smoke run of the same chain; its numbers mean nothing."),
    seed: int = typer.Option(0, help="Of everything."),
    sets: list[str] = typer.Option([], "--set", help="One value, such as grpo.steps=20. Can be repeated."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Tasks, expert traces, SFT, GRPO, evaluation and comparison of a 135M model on this machine."""
    console.quieten(json)
    settings = load_recipe("fast" if fast else "quickstart", [f"seed={seed}", *sets])
    backend = open_backend("bubblewrap")
    backend.probe()
    out = to.with_name(f"{to.name}-fast") if fast else to
    show(RecipeRun(settings, out, backend, force=fast).run(), json)
