"""The closing table of a recipe."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from inloop.cli import console
from inloop.cli.eval_ import percent


def show(summary: dict[str, Any], json: bool) -> None:
    if json:
        console.emit(summary)
        return
    if summary["scores"]:
        console.out.print(_scores(summary["scores"]))
    for pair, verdict in summary["verdicts"].items():
        console.out.print(f"{pair}: [bold]{verdict}[/bold]", highlight=False)
    if summary["receipt"]:
        console.out.print(summary["receipt"], highlight=False)
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in summary["seconds"].items())
    total = sum(summary["seconds"].values()) / 60
    console.out.print(f"time: {total:.1f} min ({spent}); peak memory {summary['peak_memory_mb']} MB", highlight=False)
    best = f"{summary['out']}/grpo/checkpoints/last"
    console.closing(
        summary["out"],
        f"inloop eval {best} --tasks {summary['out']}/tasks --out EVAL   (score it again, with other seeds)\n"
        "        inloop tasks build mutate PATH --out TASKS                (tasks from your own repository)\n"
        "        inloop train RECIPE --out RUN --set model=MODEL           (another model, where one can be had)",
    )


def _scores(scores: dict[str, Any]) -> Table:
    ks = [n for n in next(iter(scores.values())) if n.startswith("pass@")]
    first = next(iter(scores.values()))
    table = Table("", *ks, "faults", title=f"{first['tasks_scored']} held-out tasks, 95 % intervals")
    for name, summary in scores.items():
        faults = sum(summary["faults"].values())
        table.add_row(name, *(percent(summary[k]) if k in summary else "-" for k in ks), str(faults))
    return table
