"""`inloop report`: a run folder as one HTML page."""

from __future__ import annotations

from pathlib import Path

import typer

from inloop.cli import console
from inloop.report.page import report_facts, write_report

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    run: Path = typer.Argument(..., help="Folder of a recipe, a training, an evaluation or a collection."),
    to: Path | None = typer.Option(None, "--out", "-o", help="Default: report.html in the run folder."),
    json: bool = typer.Option(False, "--json", help="The figures as one JSON document on stdout; writes no page."),
) -> None:
    """What was trained on what, whether it got better, where it fails; also of a run that is not finished."""
    console.quieten(json)
    if json:
        console.emit(report_facts(run))
        return
    written = write_report(run, to)
    console.closing(str(written), f"open it in a browser, or   inloop view {run}")
