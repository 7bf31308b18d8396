"""`inloop serve`: a checkpoint behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from inloop.cli import console
from inloop.errors import InloopError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    checkpoint: str = typer.Argument(..., help="A checkpoint folder, an export, or a model's folder or name."),
    host: str = typer.Option("127.0.0.1", help="Address to listen on."),
    port: int = typer.Option(8000, min=0, max=65535, help="0 takes a free one."),
    name: str = typer.Option("", help="What clients call the model; the folder's name by default."),
    token: str | None = typer.Option(None, envvar="INLOOP_TOKEN", help="Bearer token to ask for; made if not given."),
    no_auth: bool = typer.Option(False, "--no-auth", help="Ask for no token."),
    engine: str = typer.Option("embedded", help="embedded or vllm."),
    dtype: str = typer.Option("auto", help="auto, float32 or bfloat16."),
    threads: int = typer.Option(1, min=1, help="embedded: threads of the engine's process."),
    slots: int = typer.Option(16, min=1, help="embedded: requests computed at once."),
    queue: int = typer.Option(48, min=0, help="embedded: requests that may wait; one more gets a 429."),
    max_model_len: int | None = typer.Option(None, min=2, help="Longest prompt and answer together."),
    body_mb: int = typer.Option(8, min=1, help="embedded: largest request; a larger one gets a 413."),
    watch: Path | None = typer.Option(None, help="A checkpoint folder: a newer one is swapped in while it serves."),
    grace: float = typer.Option(10.0, min=0, help="Seconds for running requests at the end."),
    python: str = typer.Option("", help="vllm: the python of vLLM's environment."),
    tool_parser: str = typer.Option("", help="vllm: its parser, where the template is not one that is known."),
    print_command: bool = typer.Option(False, "--print-command", help="vllm: print the command; start nothing."),
    json_output: bool = typer.Option(False, "--json", help="Print one JSON document when ready."),
) -> None:
    """Serve what was trained, in the dialect that it was trained in, until Ctrl-C."""
    from inloop.serve.guard import Limits
    from inloop.serve.server import Settings

    console.quieten(json_output)
    if engine not in ("embedded", "vllm"):
        raise InloopError(f"unknown engine {engine!r}", fix="use embedded or vllm")
    settings = Settings(
        checkpoint=checkpoint, name=name, host=host, port=port, token=token, open_to_all=no_auth, dtype=dtype,
        threads=threads, slots=slots, max_model_len=max_model_len, watch=watch, grace_seconds=grace,
        limits=Limits(body_bytes=body_mb << 20, in_flight=slots + queue),
    )  # fmt: skip
    if engine == "vllm":
        _vllm(settings, python, tool_parser, print_command)
    elif print_command:
        raise InloopError("--print-command is for --engine vllm", fix="add it, or leave --print-command out")
    else:
        _embedded(settings, json_output)


def _embedded(settings: object, json_output: bool) -> None:
    from inloop.serve.server import Settings, loud, serve

    assert isinstance(settings, Settings)
    with serve(settings) as server:
        if json_output:
            console.emit({"url": server.url, "token": server.token, "model": server.model})
        elif warning := loud(settings):
            console.out.print(f"[yellow]{warning}[/yellow]", highlight=False)
        console.closing(f"{server.model} at {server.url}/v1" + (f", token {server.token}" if server.token else ""),
                        server.example)  # fmt: skip
        server.wait()


def _vllm(settings: object, python: str, tool_parser: str, print_command: bool) -> None:
    from inloop.serve.server import Settings
    from inloop.serve.vllm import command, run

    assert isinstance(settings, Settings)
    plan = command(settings, python=python or "python", tool_parser=tool_parser)
    if print_command:
        shown = [f"{k}={shlex.quote(v)}" for k, v in plan.env.items() if k != "VLLM_API_KEY"]
        print(" ".join([*shown, shlex.join(plan.argv)]))
        return
    if not python:
        raise InloopError("vLLM lives in an environment of its own", fix="--python V/bin/python (docs/engine.md)")
    console.closing(
        f"{plan.name} at {plan.url}/v1 when vLLM is ready" + (f", token {plan.token}" if plan.token else "")
    )
    raise typer.Exit(run(plan))
