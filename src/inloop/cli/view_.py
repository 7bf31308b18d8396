"""`inloop view`: a local page that follows a run."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import typer

from inloop.cli import console
from inloop.errors import DataError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    run: Path = typer.Argument(..., help="A run folder, or a folder of several."),
    port: int = typer.Option(0, help="On loopback; 0 takes any that is free."),
    no_open: bool = typer.Option(False, "--no-open", help="Only print the address."),
    json: bool = typer.Option(False, "--json", help="The address as one JSON document on stdout."),
) -> None:
    """Curves, groups side by side, one rollout token by token, blind acceptance review; until Ctrl-C."""
    from inloop.report.server import run as serve

    console.quieten(json)
    if not run.is_dir():
        raise DataError(f"{run}: no such folder", fix="give the --out folder of a run")

    def opened(address: str) -> None:
        if json:
            console.emit({"url": address})
        else:
            console.out.print(f"[green]view[/green] {address}", highlight=False, soft_wrap=True)
            console.out.print("stop it with Ctrl-C", highlight=False)
        sys.stdout.flush()
        if not no_open:
            webbrowser.open(address)

    serve(run, port, opened)
