"""`inloop sft`."""

from __future__ import annotations

from pathlib import Path

import typer

from inloop.cli.console import closing, emit, out, quieten
from inloop.config import load
from inloop.evaluate.during import DuringSettings, success_on
from inloop.train.run_folder import is_first_process
from inloop.train.sft import sft
from inloop.train.sft_settings import SFTSettings

app = typer.Typer()


@app.command()
def main(
    samples: Path = typer.Argument(help="A samples.parquet, or the folder that holds one."),
    to: Path = typer.Option(..., "--out", help="Run folder."),
    config: Path | None = typer.Option(None, "--config", help="TOML: model, lr, epochs, batch, [lora], ..."),
    sets: list[str] = typer.Option([], "--set", help="One value, such as lora.layers=18. Can be repeated."),
    eval_tasks: Path | None = typer.Option(None, help="Taskset whose test split is tried at each measurement."),
    eval_k: int = typer.Option(1, help="Samples a task there."),
    eval_limit: int = typer.Option(40, help="At most so many tasks there; 0 takes all."),
    resume: bool = typer.Option(False, help="Go on where a stopped run was."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Train on samples; several GPUs with `accelerate launch $(which inloop) sft ...` and the same config."""
    quieten(json or not is_first_process())
    success = success_on(DuringSettings(tasks=eval_tasks, k=eval_k, limit=eval_limit), to) if eval_tasks else None
    trained = sft(samples, to, load(SFTSettings, config, sets), evaluate=success, resume=resume)
    if not is_first_process():
        return
    if json:
        emit(trained.to_dict())
    else:
        held_out = "" if trained.held_out_loss is None else f", held-out loss {trained.held_out_loss:.4f}"
        speed = f", {trained.tokens_per_second:,.0f} tokens/s" if trained.tokens_per_second else ""
        out.print(f"{trained.steps} steps, loss {trained.loss:.4f}{held_out}{speed}", highlight=False)
    closing(f"{trained.best} and {trained.last}", f"inloop eval {trained.best} --tasks DIR")
