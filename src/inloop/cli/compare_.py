"""`inloop compare`: better, worse, or can't tell."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.table import Table

from inloop.cli import console
from inloop.errors import DataError
from inloop.evaluate.compare import Pair, compare_all, compare_pair, gate
from inloop.evaluate.results import load_results

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    results: list[Path] = typer.Argument(..., help="Two or more results.json, or the folders that hold them."),
    promote: bool = typer.Option(False, "--gate", help="Exit 1 unless the last is better than the first."),
    margin: float = typer.Option(0.0, help="Gate: better by at least this much at the low end, in points."),
    retention: list[Path] = typer.Option([], help="Gate: results of the first and the last on a second taskset."),
    allowed_loss: float = typer.Option(2.0, help="Gate: points that may be lost on the second taskset."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Paired over tasks: effect with interval, permutation test, and how many more tasks or samples would decide."""
    console.quieten(json)
    if len(results) < 2:
        raise DataError("one result alone can't be compared", fix="give two or more results.json")
    if retention and len(retention) != 2:
        raise DataError("--retention takes two results", fix="give it twice: of the first and of the last checkpoint")
    loaded = [load_results(p) for p in results]
    pairs = compare_all(loaded)
    ends = pairs[-1] if len(loaded) > 2 else pairs[0]
    kept = compare_pair(*(load_results(p) for p in retention)) if retention else None
    verdict = gate(ends, margin=margin / 100, retention=kept, allowed_loss=allowed_loss / 100)
    if json:
        console.emit({"pairs": [p.to_dict() for p in pairs], "gate": verdict if promote else None})
    else:
        _show(pairs)
        if promote:
            console.out.print("promoted" if verdict.promoted else "not promoted: " + "; ".join(verdict.reasons))
    if promote and not verdict.promoted:
        raise typer.Exit(1)


def _show(pairs: list[Pair]) -> None:
    table = Table("from", "to", "effect (points)", "p", "verdict", "to decide")
    for pair in pairs:
        r = pair.comparison
        effect = f"{100 * r.effect:+.1f} [{100 * r.low:+.1f}, {100 * r.high:+.1f}]"
        table.add_row(pair.a, pair.b, effect, f"{r.p:.3f}", f"[bold]{r.verdict}[/bold]", _more(pair))
    console.out.print(table)
    for pair in pairs:
        for warning in pair.warnings:
            console.out.print(f"note: {warning}", highlight=False)
        if pair.left_out:
            console.out.print(f"note: {pair.left_out} tasks have a score in only one of {pair.a}, {pair.b}")


def _more(pair: Pair) -> str:
    more = pair.comparison.more_tasks
    if more == 0:
        return "-"
    if more is None:
        return "no effect to find"
    samples = f" or {pair.more_samples} samples a task" if pair.more_samples else ""
    return f"{more} more tasks{samples}"
