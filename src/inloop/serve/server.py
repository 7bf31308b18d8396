"""`inloop serve` from the embedded engine: the app, its settings, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.responses import PlainTextResponse

from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.routes_admin import prometheus
from inloop.engine.serve import example
from inloop.engine.server import AppServer, create_app, is_loopback, own_names
from inloop.errors import InloopError
from inloop.serve.artefact import opened
from inloop.serve.guard import Guard, Limits
from inloop.serve.metrics import Metrics
from inloop.serve.responses import add_responses_route
from inloop.serve.served import ServedCheckpoint, Watch
from inloop.train.origin import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    checkpoint: str
    name: str = ""
    """What clients call it; empty takes the checkpoint's folder or name."""
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    """None makes one."""
    open_to_all: bool = False
    """Ask for no token."""
    dtype: str = "auto"
    threads: int = 1
    slots: int = 16
    """Requests that are computed at once; more of them wait."""
    max_model_len: int | None = None
    limits: Limits = field(default_factory=Limits)
    watch: Path | None = None
    """A checkpoint folder, or a folder of them: what is newer there is swapped in."""
    watch_seconds: float = 2.0
    grace_seconds: float = 10.0
    """For running requests when the server is told to end."""


class SwapBody(BaseModel):
    checkpoint: str


def build_app(
    serving: ServedCheckpoint, *, token: str | None, hosts: list[str] | None, limits: Limits | None = None
) -> Guard:
    """Our routes before the engine's, and the guard around all of them."""
    metrics = Metrics()

    def routes(app: FastAPI) -> None:
        add_responses_route(app, serving)

        @app.post("/swap")
        async def swap(body: SwapBody) -> dict[str, Any]:
            version = await asyncio.to_thread(serving.swap, Path(body.checkpoint))
            return {"checkpoint": body.checkpoint, "weight_version": version}

        @app.get("/metrics")
        async def told() -> PlainTextResponse:
            metrics.weights.set((await serving.info()).weight_version)
            metrics.swaps.labels("done").set(serving.swaps)
            metrics.swaps.labels("refused").set(serving.failed_swaps)
            return PlainTextResponse(metrics.text() + await prometheus(serving))

    app = create_app(serving, token=None, hosts=hosts, first=routes)
    return Guard(app, token=token, limits=limits or Limits(), metrics=metrics)


class Running:
    """A served checkpoint, for the command that waits on it."""

    def __init__(self, server: AppServer, guard: Guard, serving: ServedCheckpoint, grace_seconds: float) -> None:
        self.url, self.token, self.model = server.url, server.token, serving.name
        self.guard, self.serving, self._grace = guard, serving, grace_seconds

    @property
    def example(self) -> str:
        return example(self.url, self.model, self.token)

    def wait(self) -> None:
        """Until Ctrl-C or SIGTERM."""
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        while not ended.wait(0.5):
            pass
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second Ctrl-C does not wait

    def drain(self) -> int:
        """Let no new request in, and wait for those that run; returns how many were cut off."""
        self.guard.draining = True
        deadline = time.monotonic() + self._grace
        while self.guard.in_flight and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.guard.in_flight


@contextmanager
def serve(settings: Settings) -> Iterator[Running]:
    """Serve until the block ends; running requests get their time then."""
    if settings.open_to_all and settings.token:
        raise InloopError("both a token and --no-auth are given", fix="choose one of them")
    token = None if settings.open_to_all else settings.token or secrets.token_urlsafe(24)
    with opened(settings.checkpoint) as start, _engine(settings, start) as engine:
        serving = ServedCheckpoint(engine, start, settings.name or name_of(settings.checkpoint))
        guard = build_app(serving, token=token, hosts=own_names(settings.host), limits=settings.limits)
        server = AppServer(guard, host=settings.host, port=settings.port, token=token)
        with server, _watching(settings, serving):
            running = Running(server, guard, serving, settings.grace_seconds)
            try:
                yield running
            finally:
                running.drain()


def name_of(checkpoint: str) -> str:
    """`runs/fix/grpo/checkpoints/last` -> `grpo-last`: a folder called `last` says too little."""
    path = Path(checkpoint)
    if path.name in ("last", "best") and path.parent.name == "checkpoints":
        return f"{path.resolve().parents[1].name}-{path.name}"
    return path.name


def loud(settings: Settings) -> str:
    """What a person should know before others can reach it; '' when nothing."""
    if is_loopback(settings.host) or not settings.open_to_all:
        return ""
    return f"anybody who can reach {settings.host} can use this model: --no-auth beyond loopback"


@contextmanager
def _engine(settings: Settings, start: Origin) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine.start(
        start.base,
        dtype=settings.dtype,
        threads=settings.threads,
        slots=settings.slots,
        max_model_len=settings.max_model_len or start.harness.max_context or None,
    ) as engine:
        if start.adapter is not None:
            engine.load_adapter(start.adapter, 1)
        yield engine


def _watching(settings: Settings, serving: ServedCheckpoint) -> contextlib.AbstractContextManager[Any]:
    if settings.watch is None:
        return contextlib.nullcontext()
    return Watch(serving, settings.watch, seconds=settings.watch_seconds)
