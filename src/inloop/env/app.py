"""The ASGI application: OpenEnv's routes over our sessions, a reaper, admin and metrics; the token around it all."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Response
from openenv.core.env_server.http_server import HTTPEnvServer
from openenv.core.env_server.types import ConcurrencyConfig

from inloop import __version__
from inloop.env.catalog import Catalog
from inloop.env.connection import CURRENT, App, Guard, Watched
from inloop.env.environment import NAME, Hall, InloopEnvironment
from inloop.env.episode import Place
from inloop.env.models import InloopAction, InloopObservation, InloopState
from inloop.env.sessions import Sessions
from inloop.errors import InloopError
from inloop.harness.config import HarnessConfig
from inloop.sandbox import lease
from inloop.sandbox.backends import DEFAULT, open_backend

EXTRA_THREADS = 8
"""Of the pool, for closing what others hold."""
QUICK_THREADS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvSettings:
    tasks: Path
    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes a free one."""
    token: str | None = None
    """None asks for none."""
    max_sessions: int = 64
    session_timeout: float = 600.0
    """Seconds after which a session without a socket, that nothing runs in, is ended; with one it stays."""
    max_steps: int = 100
    """Of an episode."""
    message_bytes: int = 16 << 20
    """Longest frame that is taken."""
    sandbox: str = DEFAULT
    image: str = ""
    harness: HarnessConfig = field(default_factory=HarnessConfig)
    name: str = NAME
    """Of the environment, in the Task API's routes."""


class Server(HTTPEnvServer):  # type: ignore[misc]
    """OpenEnv's server with sessions that can be listed and ended.

    Overrides two methods that are not public (OpenEnv 0.10); tests/env/test_contract.py fails when they change."""

    def __init__(self, hall: Hall, settings: EnvSettings) -> None:
        super().__init__(
            partial(InloopEnvironment, hall),
            InloopAction,
            InloopObservation,
            concurrency_config=ConcurrencyConfig(max_concurrent_envs=settings.max_sessions, session_timeout=None),
            env_name=settings.name,
            state_cls=InloopState,
        )
        self.hall, self.timeout = hall, settings.session_timeout

    async def _create_session(self) -> tuple[str, Any]:
        try:
            session_id, env = await super()._create_session()
        except Exception:
            self.hall.sessions.count("refused_total")
            raise
        env.attach(session_id, CURRENT.get())
        return session_id, env

    async def end(self, session_id: str, reason: str) -> bool:
        """End a session and what runs in it; False when there is none of this id."""
        env = self.hall.sessions.all().get(session_id)
        if env is None:
            return False
        if env.busy:
            env.abandon()
        if env.connection is not None:
            await env.connection.end(reason)  # its handler destroys the session
        else:
            await self._destroy_session(session_id)
        return True

    async def reap(self) -> None:
        """OpenEnv's own reaper would end sessions that a client still holds: a model may think for long."""
        every = min(5.0, max(0.05, self.timeout / 4))
        while True:
            await asyncio.sleep(every)
            for session_id, env in self.hall.sessions.all().items():
                try:
                    await self._look_after(session_id, env)
                except Exception:  # one session must not keep the others from being looked after
                    logging.getLogger("inloop.env").exception("session %s", session_id)

    async def _look_after(self, session_id: str, env: Any) -> None:
        held = env.connection is not None or session_id in self._session_websocket_attachments
        if not held and env.idle_seconds > self.timeout:
            self.hall.sessions.count("reaped_total")
            await self.end(session_id, "idle")
        elif env.episode is not None and env.episode.overdue and not env.busy:
            self.hall.pool.submit(env.episode.expire)

    def shut(self) -> None:
        """End everything that runs, from any thread."""
        with ThreadPoolExecutor(16, thread_name_prefix="close") as closing:
            list(closing.map(lambda env: env.close(), self.hall.sessions.all().values()))
        for pool in (self.hall.pool, self.hall.quick):
            pool.shutdown(wait=False, cancel_futures=True)


def build_hall(settings: EnvSettings) -> Hall:
    """Raises TaskError or SandboxFault, with the fix, for what would fail at the first reset."""
    backend = open_backend(settings.sandbox, image=settings.image)
    backend.probe()
    lease.clean()  # what a killed server left
    return Hall(
        catalog=Catalog(settings.tasks),
        place=Place(backend=backend, harness=settings.harness, max_steps=settings.max_steps),
        sessions=Sessions(settings.max_sessions),
        pool=ThreadPoolExecutor(settings.max_sessions + EXTRA_THREADS, thread_name_prefix="env"),
        quick=ThreadPoolExecutor(QUICK_THREADS, thread_name_prefix="env-quick"),
        message_bytes=settings.message_bytes,
    )


def build_app(settings: EnvSettings, *, hosts: frozenset[str] | None = None) -> tuple[App, Server]:
    """`hosts`: the names that requests may be addressed to where no token is asked for."""
    server = Server(build_hall(settings), settings)
    api = FastAPI(title="inloop environment", version=f"1.0+inloop.{__version__}")
    reapers: list[asyncio.Task[None]] = []

    async def start() -> None:
        reapers.append(asyncio.create_task(server.reap()))

    async def stop() -> None:
        for task in reapers:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        server.shut()

    api.router.on_startup.append(start)
    api.router.on_shutdown.append(stop)
    _add_routes(api, server)
    server.register_routes(api)
    return Guard(Watched(api), token=settings.token, hosts=hosts), server


def package_app(root: Path, *, name: str) -> App:
    """What a package serves: its own `tasks/`, under the settings of the environment variables. Raises InloopError
    where neither a token nor its absence is asked for."""
    token = os.environ.get("INLOOP_ENV_TOKEN") or None
    if token is None and os.environ.get("INLOOP_ENV_AUTH") != "none":
        raise InloopError("no token is set", fix="set INLOOP_ENV_TOKEN, or INLOOP_ENV_AUTH=none to ask for none")
    most = int(os.environ.get("MAX_CONCURRENT_ENVS", "64"))
    app, _ = build_app(EnvSettings(tasks=root / "tasks", token=token, max_sessions=most, name=name))
    return app


def _add_routes(api: FastAPI, server: Server) -> None:
    @api.get("/admin/sessions", tags=["Admin"])
    async def sessions() -> dict[str, Any]:
        return server.hall.sessions.listed()

    @api.delete("/admin/sessions/{session_id}", tags=["Admin"])
    async def end(session_id: str) -> dict[str, Any]:
        if not await server.end(session_id, "ended by the operator"):
            raise HTTPException(404, f"there is no session {session_id}")
        return {"ended": session_id}

    @api.get("/metrics", tags=["Admin"])
    async def metrics() -> Response:
        return Response(server.hall.sessions.prometheus(), media_type="text/plain; version=0.0.4")
