"""`inloop export`: a checkpoint for other tools, with a model card."""

from __future__ import annotations

from pathlib import Path

import typer

from inloop.cli import console

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    checkpoint: Path = typer.Argument(..., help="A checkpoint folder."),
    form: str = typer.Option(..., "--to", help="adapter, merged or gguf."),
    out: Path = typer.Option(..., "-o", "--out", help="A new folder."),
    dtype: str = typer.Option("float32", help="merged: float32, bfloat16 or float16."),
    gguf_type: str = typer.Option("bf16", help="gguf: f32, f16, bf16 or q8_0."),
    run: Path | None = typer.Option(None, help="Run folder for the card; looked for around the checkpoint."),
    base: str = typer.Option("", help="The base model, where it is not where the checkpoint says."),
    json_output: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """PEFT adapter, merged safetensors or GGUF, with chat template, inloop.json and a card from the run folder."""
    from inloop.serve.export import ExportSettings, export

    console.quieten(json_output)
    settings = ExportSettings(to=form, dtype=dtype, gguf_type=gguf_type, run=run, base=base)
    made = export(checkpoint, out, settings)
    if json_output:
        files = {p.name: p.stat().st_size for p in sorted(made.iterdir())}
        console.emit({"out": str(made), "form": form, "files": files})
    console.closing(str(made), f"inloop parity {checkpoint} --artefact {made} --trajectories RUN")
