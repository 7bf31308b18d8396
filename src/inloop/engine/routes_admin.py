"""vLLM's other routes: health, server_info, tokenize, pause and resume, adapters, abort, metrics."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI
from starlette.responses import PlainTextResponse

from inloop import __version__
from inloop.engine.bodies import (
    AbortBody,
    ApiError,
    DetokenizeBody,
    LoadAdapterBody,
    TokenizeBody,
    UnloadAdapterBody,
)
from inloop.engine.serving import Serving


def add_admin_routes(app: FastAPI, serving: Serving) -> None:
    add_state_routes(app, serving)
    add_adapter_routes(app, serving)

    @app.post("/tokenize")
    async def tokenize(body: TokenizeBody) -> dict[str, Any]:
        ids = tokens(serving, body)
        return {"tokens": ids, "count": len(ids), "max_model_len": serving.first.max_model_len}

    @app.post("/detokenize")
    async def detokenize(body: DetokenizeBody) -> dict[str, Any]:
        return {"prompt": serving.form.decode(body.tokens, keep_special=True)}

    @app.post("/abort_requests")
    async def abort(body: AbortBody) -> dict[str, Any]:
        names = body.request_ids or list(serving.in_flight)
        for name in names:
            for choice in serving.in_flight.get(name, []):
                choice.abort()
        return {"aborted": [n for n in names if n in serving.in_flight]}


def add_state_routes(app: FastAPI, serving: Serving) -> None:
    @app.get("/health")
    async def health() -> dict[str, Any]:
        await serving.info()
        return {}

    @app.get("/version")
    async def version() -> dict[str, Any]:
        return {"version": f"inloop-{__version__}"}

    @app.get("/server_info")
    async def server_info() -> dict[str, Any]:
        info = await serving.info()
        model = {"model": info.model, "dtype": f"torch.{info.dtype}", "max_model_len": info.max_model_len}
        config = {
            "model_config": {**model, "logprobs_mode": info.logprobs_mode},
            "lora_config": None,
            "parallel_config": {"data_parallel_size": 1, "tensor_parallel_size": 1, "world_size": 1},
        }
        return {"vllm_config": config, "weight_version": info.weight_version, "inloop": info.meta}

    @app.get("/get_world_size")
    async def world_size() -> dict[str, int]:
        return {"world_size": 1}

    @app.post("/pause")
    async def pause(mode: str = "keep") -> dict[str, Any]:
        if mode not in ("keep", "abort"):
            raise ApiError(400, f"pause mode {mode!r} is not supported; use keep or abort")
        if mode == "abort":
            for choice in [c for choices in serving.in_flight.values() for c in choices]:
                choice.abort()
        await serving.pause(True)
        return {"status": "paused"}

    @app.post("/resume")
    async def resume() -> dict[str, Any]:
        await serving.pause(False)
        return {"status": "resumed"}

    @app.get("/is_paused")
    async def is_paused() -> dict[str, bool]:
        return {"is_paused": serving.paused}

    @app.get("/metrics")
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(await prometheus(serving))


def add_adapter_routes(app: FastAPI, serving: Serving) -> None:
    @app.post("/v1/load_lora_adapter")
    async def load(body: LoadAdapterBody) -> PlainTextResponse:
        await serving.load(body.lora_name, body.lora_path)
        return PlainTextResponse(f"Success: LoRA adapter '{body.lora_name}' added successfully.")

    @app.post("/v1/unload_lora_adapter")
    async def unload(body: UnloadAdapterBody) -> PlainTextResponse:
        await serving.unload(body.lora_name)
        return PlainTextResponse(f"Success: LoRA adapter '{body.lora_name}' removed successfully.")


def tokens(serving: Serving, body: TokenizeBody) -> list[int]:
    if body.messages is not None:
        options = body.chat_template_kwargs or {}
        return serving.form.render(body.messages, body.tools, open_turn=body.add_generation_prompt, **options)
    if body.prompt is None:
        raise ApiError(400, "tokenize needs a prompt or messages")
    return serving.form.encode(body.prompt)


async def prometheus(serving: Serving) -> str:
    meters = await asyncio.to_thread(serving.engine.meters)
    renamed = {
        "prompt_tokens": "vllm:prompt_tokens_total",
        "sampled_tokens": "vllm:generation_tokens_total",
        "running": "vllm:num_requests_running",
        "waiting": "vllm:num_requests_waiting",
    }
    rows = [f"{renamed.get(k, f'inloop:{k}')} {v}" for k, v in meters.items()]
    return "\n".join(rows) + "\n"
