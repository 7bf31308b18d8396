"""`inloop train`: the stages that a recipe names."""

from __future__ import annotations

from pathlib import Path

import typer

from inloop.cli import console
from inloop.cli.stages import show
from inloop.config import dump, to_dict
from inloop.recipe.budget import Budget, parse_budget
from inloop.recipe.config import Recipe, load_recipe
from inloop.recipe.forecast import Forecast, Range, forecast
from inloop.recipe.run import RecipeRun
from inloop.sandbox.backends import open_backend

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    recipe: str = typer.Argument(
        ..., help="TOML, or the name of one that comes along: quickstart, your-repo, one-gpu, node, cluster."
    ),
    to: Path = typer.Option(..., "--out", help="Run folder; the same command goes on with what is in it."),
    sets: list[str] = typer.Option([], "--set", help="One value, such as grpo.steps=20. Can be repeated."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print the resolved plan and a forecast from a short pilot."),
    pilot: bool = typer.Option(True, help="With --dry-run: --no-pilot prints the plan alone, at once."),
    budget: str = typer.Option("", help="Such as 90min or 2h: training stops in time for the evaluation."),
    force: bool = typer.Option(False, help="Start GRPO although the advisor finds no signal."),
    sandbox: str = typer.Option("bubblewrap", help="bubblewrap, docker or unisolated-process."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Run them in order; what is done is not done again."""
    console.quieten(json)
    settings = load_recipe(recipe, sets)
    limit = parse_budget(budget) if budget else 0.0
    if dry_run:
        plan(settings, forecast(settings) if pilot else None, json)
        return
    backend = open_backend(sandbox)
    backend.probe()
    summary = RecipeRun(settings, to, backend, force=force, budget=Budget(limit)).run()
    show(summary, json)


def plan(settings: Recipe, expected: Forecast | None, json: bool) -> None:
    """The resolved recipe as TOML on stdout, what it will take beside it."""
    if json:
        console.emit(
            {"stages": settings.stages, "config": to_dict(settings), "forecast": expected and expected.to_dict()}
        )
        return
    print(dump(settings))
    if expected:
        _show_forecast(expected)
    console.closing("nothing", "the same command without --dry-run")


def _show_forecast(expected: Forecast) -> None:
    rows = {"rollouts an hour": expected.rollouts_per_hour, "trained tokens a second": expected.train_tokens_per_second}
    for name, value in rows.items():
        console.out.print(f"{name}: {_around(value, '.0f')}", highlight=False)
    for name, value in expected.seconds.items():
        minutes = Range(low=value.low / 60, mean=value.mean / 60, high=value.high / 60)
        console.out.print(f"{name}: {_around(minutes, '.1f')} min", highlight=False)
    hours, gpus = expected.hours, expected.gpus
    console.out.print(f"together: {_around(hours, '.2f')} h, {hours.mean * gpus:.2f} GPU hours", highlight=False)
    console.out.print(f"disk: about {expected.disk_mb:.0f} MB", highlight=False)
    if expected.stand_in:
        console.out.print("the pilot ran on starter tasks: the recipe's own are not built yet", highlight=False)


def _around(value: Range, form: str) -> str:
    return f"{value.mean:{form}} [{value.low:{form}}, {value.high:{form}}]"
