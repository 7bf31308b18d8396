"""`inloop engine`: the embedded engine as a server, and what one says of itself."""

from __future__ import annotations

import typer

from inloop.cli import console
from inloop.errors import InloopError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command()
def serve(
    model: str = typer.Argument("smollm2-135m", help="A name, a local folder, or a Hugging Face id."),
    host: str = typer.Option("127.0.0.1", help="Address to listen on; a token is asked for beyond loopback."),
    port: int = typer.Option(8000, min=0, max=65535, help="0 takes a free one."),
    dtype: str = typer.Option("auto", help="auto, float32 or bfloat16."),
    threads: int = typer.Option(1, min=1, help="Threads of the engine's process."),
    slots: int = typer.Option(32, min=1, help="Conversations that are kept in the cache."),
    max_model_len: int | None = typer.Option(None, min=2, help="Longest prompt and answer together."),
    adapter: str | None = typer.Option(None, help="A PEFT LoRA folder to serve from the start."),
    chat_template: str | None = typer.Option(None, help="A jinja file instead of the model's own template."),
    token: str | None = typer.Option(None, envvar="INLOOP_ENGINE_TOKEN", help="Bearer token to ask for."),
    no_token: bool = typer.Option(False, "--no-token", help="Ask for none, even beyond loopback."),
    json_output: bool = typer.Option(False, "--json", help="Print one JSON line when ready."),
) -> None:
    """Serve a model behind vLLM's HTTP interface until Ctrl-C."""
    from inloop.engine.serve import Settings, serving

    console.quieten(json_output)
    settings = Settings(
        model=model, host=host, port=port, dtype=dtype, threads=threads, slots=slots, max_model_len=max_model_len,
        adapter=adapter, chat_template=chat_template, token=token, open_to_all=no_token,
    )  # fmt: skip
    with serving(settings) as server:
        if json_output:
            console.emit({"url": server.url, "token": server.token, "model": model})
        console.closing(f"{model} at {server.url}", server.example)
        server.wait()


@app.command()
def info(
    url: str = typer.Argument("http://127.0.0.1:8000", help="A server of ours, or vLLM."),
    token: str | None = typer.Option(None, envvar="INLOOP_ENGINE_TOKEN", help="Its bearer token."),
    json_output: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """What a running engine serves, and whether it can be trained with."""
    from inloop.engine.vllm import VllmEngine

    console.quieten(json_output)
    engine = VllmEngine.attach(url, token=token, trainable=False)
    try:
        value = engine.info()
    finally:
        engine.close()
    if json_output:
        console.emit(value)
        return
    console.out.print(
        f"{value.model}: {value.max_model_len} tokens, {value.dtype}, {value.logprobs_mode}, "
        f"weights {value.weight_version}, {value.meta.get('pass', 'pass not told')}",
        soft_wrap=True,
    )
    if not value.trainable:
        raise InloopError(
            f"logprobs_mode is {value.logprobs_mode}: not what a trainer computes",
            fix="start vLLM with --logprobs-mode processed_logprobs",
        )
