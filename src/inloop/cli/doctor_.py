"""`inloop doctor`: this machine, and one real task through the whole chain."""

from __future__ import annotations

from pathlib import Path

import typer

from inloop.cli import console
from inloop.engine.models import SMOLLM2
from inloop.recipe.checkup import Finding
from inloop.recipe.doctor import diagnose

app = typer.Typer(rich_markup_mode=None)
MARKS = {"ok": "[green]ok     [/green]", "note": "[yellow]note   [/yellow]", "failed": "[red]failed [/red]"}


@app.command()
def main(
    model: str = typer.Option(SMOLLM2, "--model", help="A name or a folder."),
    out: Path = typer.Option(Path("runs"), "--out", help="Where runs would be written: its disk is looked at."),
    sandbox: str = typer.Option("bubblewrap", help="bubblewrap, docker or unisolated-process."),
    machine: bool = typer.Option(False, "--machine", help="Only the machine; no task, no model."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Say what works here, and how to mend what does not; exit 1 when something failed."""
    console.quieten(json)
    findings = diagnose(model, out, sandbox, machine=machine)
    failed = [f for f in findings if f.state == "failed"]
    if json:
        console.emit({"ok": not failed, "checks": [f.to_dict() for f in findings]})
    else:
        show(findings)
        console.closing("nothing", "inloop quickstart" if not failed else "mend what failed, and call the doctor again")
    raise typer.Exit(bool(failed))


def show(findings: list[Finding]) -> None:
    for found in findings:
        mark = MARKS.get(found.state, "[dim]skipped[/dim]")
        console.out.print(f"{mark} {found.name:20}", end=" ", highlight=False)
        console.out.print(found.said, highlight=False, markup=False, soft_wrap=True)
        if found.fix:
            console.out.print(f"[yellow]{'fix':>28}[/yellow] ", end="", highlight=False)
            console.out.print(found.fix, highlight=False, markup=False, soft_wrap=True)
