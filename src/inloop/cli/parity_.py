"""`inloop parity`: prove that what is served is what was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.markup import escape
from rich.table import Table

from inloop.cli import console
from inloop.files import write_json

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    checkpoint: str = typer.Argument(..., help="What was trained."),
    url: str = typer.Option("", help="Of the endpoint that serves it."),
    token: str | None = typer.Option(None, envvar="INLOOP_TOKEN", help="Its bearer token."),
    artefact: str = typer.Option("", help="An export (or checkpoint) to serve from the embedded engine for the test."),
    trajectories: list[Path] = typer.Option([], help="Training turns to replay: a run folder or ledger. Repeatable."),
    samples: Path | None = typer.Option(None, help="Trained samples: the ids of traces that hold only text."),
    turns: int = typer.Option(40, min=1, help="At most so many turns, spread evenly."),
    tokens: int = typer.Option(0, min=0, help="Sampled tokens a turn; 0 takes the harness's."),
    tolerance: float = typer.Option(0.0, min=0, help="Mean |difference| of log-probabilities; 0 goes by the dtype."),
    margin: float = typer.Option(0.15, min=0, help="Defective turns above the base model's share."),
    dtype: str = typer.Option("float32", help="artefact: float32, bfloat16 or auto."),
    seed: int = typer.Option(0, help="Of the sampled turns."),
    report_file: Path | None = typer.Option(None, "--out", help="Write the report there as JSON."),
    json_output: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Exit code 0 when parity holds, 1 when it does not."""
    from inloop.serve.parity import ParitySettings, parity

    console.quieten(json_output)
    settings = ParitySettings(
        url=url, token=token, artefact=artefact, trajectories=tuple(trajectories), samples=samples, turns=turns,
        tokens=tokens, tolerance=tolerance, defect_margin=margin, dtype=dtype, seed=seed,
    )  # fmt: skip
    told = parity(checkpoint, settings).to_dict()
    if report_file:
        write_json(report_file, told)
    if json_output:
        console.emit(told)
    else:
        _show(told)
    if told["failures"]:
        raise typer.Exit(1)


def _show(told: dict[str, Any]) -> None:
    prompts, calls, logprobs, defects = told["prompts"], told["calls"], told["logprobs"], told["defects"]
    table = Table("", "", title=f"{told['turns']} turns at {told['endpoint']}")
    table.add_row("prompts", f"{prompts['same']} same ids, {prompts['respelt']} respelt, "
                             f"{prompts['different']} different")  # fmt: skip
    table.add_row("calls", f"{calls['same']} of {calls['checked']} read the same")
    table.add_row("log-probabilities", f"{logprobs['mean_abs']:.2g} apart over {logprobs['tokens']} tokens "
                                       f"(most {logprobs['tolerance']:.2g})")  # fmt: skip
    base = "not measured" if defects["base"] is None else f"{defects['base']:.0%}"
    table.add_row("turns without a call", f"{defects['served']:.0%}, base model {base}")
    console.out.print(table)
    for example in (*prompts["examples"][:1], *calls["examples"][:1]):
        console.out.print(escape(str(example)), highlight=False, soft_wrap=True)
    for failure in told["failures"]:
        console.out.print(f"[red]fails[/red] {escape(failure)}", highlight=False, soft_wrap=True)
    if not told["failures"]:
        console.out.print("[green]parity holds[/green]")
