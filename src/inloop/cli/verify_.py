"""`inloop verify TASK WORKSPACE`: the reward of a workspace, with what each hidden test said."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from inloop import progress
from inloop.cli import console
from inloop.tasks.folder import load_task
from inloop.types import Reward, Verdict
from inloop.verify.verifier import Verifier

app = typer.Typer(add_completion=False)
COLOURS = {Verdict.PASSED: "green", Verdict.FAULT: "magenta"}


@app.command()
def verify(
    task: Path = typer.Argument(help="Task folder."),
    workspace: Path = typer.Argument(help="Folder that the agent worked in: what differs from the task's is judged."),
    json_output: bool = typer.Option(False, "--json", help="Print the reward as JSON."),
) -> None:
    """Exit code 0: full reward; 1: less; 2: it could not be judged, or bad input."""
    console.quieten(json_output)
    loaded = load_task(task)
    with progress.bar("verify", 1) as bar:
        reward = Verifier().verify(loaded, workspace)
        bar.step()
    if json_output:
        console.emit(asdict(reward))
    else:
        show(reward)
    raise typer.Exit(2 if reward.value is None else 0 if reward.value == 1.0 else 1)


def show(reward: Reward) -> None:
    """The per-test table, the evidence, the verdict."""
    table = Table(box=None, pad_edge=False)
    table.add_column("test", overflow="fold")
    for name in ("result", "CPU s", "detail"):
        table.add_column(name, no_wrap=name != "detail", overflow="ellipsis")
    for test in reward.tests:
        why = "" if test.status == "passed" else reason(test.detail)
        table.add_row(escape(test.id), test.status, f"{test.cpu_seconds:.3f}", escape(why))
    if reward.tests:
        console.out.print(table)
    for line in reward.evidence:
        console.out.print(f"evidence: {line}", markup=False, highlight=False, soft_wrap=True)
    colour = COLOURS.get(reward.verdict, "red")
    value = "none (could not be judged)" if reward.value is None else f"{reward.value:g}"
    share = "" if reward.fraction is None else f", {reward.fraction:.0%} of the hidden tests passed"
    console.out.print(
        f"[{colour}]{reward.verdict}[/{colour}] reward {value}{share} ({reward.mode}, {reward.seconds:.2f} s)",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def reason(detail: str) -> str:
    """The line that names the error, which pytest marks with an E."""
    lines = [line.strip() for line in detail.splitlines() if line.strip()]
    marked = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return (marked or lines[-1:] or [""])[0][:100]
