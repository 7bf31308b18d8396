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
    if summary["report"]:
        console.out.print(f"report: {summary['report']}", highlight=False, soft_wrap=True)
    console.closing(summary["out"], "\n        ".join(_next(summary)))


def _next(summary: dict[str, Any]) -> list[str]:
    """Three things to try: the agent at work, one's own tasks, a bigger model."""
    best = f"{summary['out']}/grpo/checkpoints/last"
    return [
        f'inloop code "what is wrong" -C REPO -m {best}   (the agent in your own repository)',
        "inloop train your-repo --out RUN --set tasks.source=REPO   (tasks from your repository, then this chain)",
        "inloop train one-gpu --out RUN --dry-run   (a 4B model on a GPU)",
    ]


def _scores(scores: dict[str, Any]) -> Table:
    ks = [n for n in next(iter(scores.values())) if n.startswith("pass@")]
    first = next(iter(scores.values()))
    table = Table("", *ks, "faults", title=f"{first['tasks_scored']} held-out tasks, 95 % intervals")
    for name, summary in scores.items():
        faults = sum(summary["faults"].values())
        table.add_row(name, *(percent(summary[k]) if k in summary else "-" for k in ks), str(faults))
    return table
