"""`inloop loop`: watch sessions, learn from them, promote through the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.markup import escape
from rich.table import Table

from inloop.cli import console
from inloop.recipe.loop import run_loop
from inloop.recipe.loop_config import load_loop

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    config: Path = typer.Argument(..., help="TOML: what is watched, trained, and scored on; see docs/loop.md."),
    rounds: int = typer.Option(0, "--rounds", min=0, help="Stop after so many rounds; 0 goes on for ever."),
    once: bool = typer.Option(False, "--once", help="Stop when too few new sessions are left for a round."),
    sets: list[str] = typer.Option([], "--set", help="One value, such as sft.lr=1e-4. Can be repeated."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Rounds over new sessions. Stopped at any moment, the same command goes on."""
    console.quieten(json)
    done = run_loop(load_loop(config, sets), rounds=rounds, once=once)
    if json:
        console.emit(done)
        return
    if done["rounds"]:
        console.out.print(_table(done["rounds"]))
    console.out.print(f"{done['waiting']} sessions wait for the next round", highlight=False)
    current = done["current"] or "the checkpoint that it began with"
    console.closing(f"{done['out']}; current: {current}", f"inloop serve {done['current'] or 'CHECKPOINT'}")


def _table(rounds: list[dict[str, Any]]) -> Table:
    table = Table("round", "tasks", "samples", "replayed", "held out (points)", "verdict")
    for one in rounds:
        facts = one["facts"]
        points = facts.get("gate", {}).get("points", {}).get("held_out")
        verdict = "promoted" if one["promoted"] else "; ".join(one["reasons"]) if one["closed"] else "not finished"
        table.add_row(
            str(one["number"]),
            str(facts.get("tasks", {}).get("tasks", "-")),
            str(facts.get("data", {}).get("samples", "-")),
            str(facts.get("data", {}).get("replayed", "-")),
            "-" if points is None else f"{points:+.1f}",
            escape(verdict),
        )
    return table
