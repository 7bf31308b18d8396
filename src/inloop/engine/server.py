"""The engine behind vLLM's HTTP surface, on loopback."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response

from inloop.engine.answers import as_api_error
from inloop.engine.bodies import ApiError
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.routes_admin import add_admin_routes
from inloop.engine.routes_openai import add_openai_routes
from inloop.engine.serving import Serving
from inloop.errors import InloopError


def create_app(
    serving: Serving,
    *,
    token: str | None,
    hosts: list[str] | None = None,
    first: Callable[[FastAPI], None] = lambda app: None,
) -> FastAPI:
    """`token` is asked for as a bearer token everywhere but at /health; `hosts` keeps browsers' tricks out.

    `first` may add routes, which come before those of the same path here."""
    app = FastAPI(title="inloop engine", openapi_url=None)
    first(app)
    if hosts is not None:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    if token is not None:
        _ask_for(app, token)
    add_openai_routes(app, serving)
    add_admin_routes(app, serving)
    _shape_errors(app)
    return app


def _ask_for(app: FastAPI, token: str) -> None:
    @app.middleware("http")
    async def check(request: Request, call_next: Any) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.url.path != "/health" and not secrets.compare_digest(given.encode(), token.encode()):
            error = ApiError(401, "a bearer token is needed", kind="authentication_error", code="invalid_api_key")
            return JSONResponse(error.body(), status_code=401)
        response: Response = await call_next(request)
        return response


def _shape_errors(app: FastAPI) -> None:
    def answer(error: ApiError) -> JSONResponse:
        return JSONResponse(error.body(), status_code=error.status)

    async def known(_: Request, error: Exception) -> JSONResponse:
        return answer(as_api_error(error))

    async def malformed(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"] if p != "body")
        return answer(ApiError(400, f"{where}: {first['msg']}" if where else str(first["msg"])))

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return answer(
            ApiError(error.status_code, str(error.detail), code="not_found" if error.status_code == 404 else "")
        )

    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, http)
    for kind in (ApiError, InloopError, Exception):
        app.add_exception_handler(kind, known)


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_names(host: str) -> list[str] | None:
    """Host headers that a server on loopback answers to; None elsewhere, where any may be right."""
    return ["127.0.0.1", "localhost", "[::1]", host] if is_loopback(host) else None


class AppServer:
    """An ASGI app on a thread."""

    def __init__(self, app: Any, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        self.host, self.token = host, token
        self._socket = bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="server", daemon=True)

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def start(self) -> Self:
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise InloopError(f"the server did not start on {self.url}")
            time.sleep(0.01)
        return self

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


class EngineServer(AppServer):
    """A server on a thread: `with EngineServer(engine) as server: ... server.url`. It does not close the engine."""

    def __init__(
        self,
        engine: EmbeddedEngine,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        chat_template: str | None = None,
    ) -> None:
        app = create_app(Serving(engine, chat_template=chat_template), token=token, hosts=own_names(host))
        super().__init__(app, host=host, port=port, token=token)


def bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except (OSError, OverflowError) as error:
        sock.close()
        raise InloopError(f"can't listen on {host}:{port}: {error}", fix="choose another --port or --host") from error
    return sock
