"""`inloop view`: a page on loopback behind a token; it reads the run folder and writes nothing but reviews."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles

from inloop.errors import ConfigError, InloopError
from inloop.report import reviews
from inloop.report.detail import Vocabularies, detail, side_by_side
from inloop.report.watch import Watched, state

HOST = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}
MOST_ROWS = 500
"""Rollouts in one answer."""


def bind(port: int) -> socket.socket:
    """Loopback only; 0 takes any free port. Raises ConfigError when it is taken."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise ConfigError(f"port {port}: {error.strerror}", fix="choose another --port, or 0 for any") from None
    return listening


def run(root: Path, port: int, opened: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `opened` is given the address with its token."""
    import uvicorn

    listening, token = bind(port), secrets.token_urlsafe(24)
    with listening:
        port = int(listening.getsockname()[1])
        app = make_app(Watched(root), token, port)
        opened(f"http://{HOST}:{port}/?token={token}")
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        server.run(sockets=[listening])


def make_app(watched: Watched, token: str, port: int) -> FastAPI:
    app = FastAPI(title="inloop view", docs_url=None, redoc_url=None, openapi_url=None)
    _guard(app, token, port)
    _pages(app, watched)
    _review(app, reviews.Desk(watched))
    app.mount("/static", StaticFiles(directory=str(files("inloop.report") / "static")))

    @app.exception_handler(InloopError)
    def told(request: Request, error: InloopError) -> JSONResponse:
        return JSONResponse({"error": error.message, "fix": error.fix}, status_code=400)

    return app


def _guard(app: FastAPI, token: str, port: int) -> None:
    """Only who holds the token, only under our own name (a page elsewhere may resolve its name to loopback)."""
    cookie = f"inloop_{port}"
    names = {f"{HOST}:{port}", f"localhost:{port}"}

    @app.middleware("http")
    async def guard(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        given = request.query_params.get("token") or request.cookies.get(cookie) or ""
        origin = request.headers.get("origin", "")
        if request.headers.get("host") not in names or (origin and origin.removeprefix("http://") not in names):
            response: Response = PlainTextResponse("wrong host", status_code=403)
        elif not secrets.compare_digest(given.encode(), token.encode()):
            response = PlainTextResponse("no token: open the address that `inloop view` printed", status_code=403)
        elif "token" in request.query_params:
            response = RedirectResponse("/", status_code=303)  # out of the address bar; the fragment is kept
            response.set_cookie(cookie, token, httponly=True, samesite="strict")
        else:
            response = await call(request)
        response.headers.update(HEADERS)
        return response


def _pages(app: FastAPI, watched: Watched) -> None:
    page = (files("inloop.report") / "static" / "view.html").read_bytes()
    vocabularies = Vocabularies()

    @app.get("/")
    def index() -> Response:
        return Response(page, media_type="text/html; charset=utf-8")

    @app.get("/api/state")
    def told() -> dict[str, Any]:
        return state(watched)

    @app.get("/api/rollouts")
    def rollouts(
        q: str = "",
        sort: str = "",
        reverse: bool = False,
        offset: int = Query(0, ge=0),
        limit: int = Query(100, ge=0, le=MOST_ROWS),
    ) -> dict[str, Any]:
        watched.look()
        found = watched.find(q, sort, reverse=reverse)
        rows = [r.row() for r in found[offset : offset + limit]]
        return {"total": len(found), "offset": offset, "rows": rows, "complete": watched.complete}

    @app.get("/api/place")
    def place(key: str, q: str = "", sort: str = "", reverse: bool = False) -> dict[str, Any]:
        """Where a rollout stands in the list, and its neighbours: for the keys that go on."""
        watched.look()
        keys = [r.key for r in watched.find(q, sort, reverse=reverse)]
        at = keys.index(key) if key in keys else -1
        around = {"before": keys[at - 1] if at > 0 else "", "after": keys[at + 1] if 0 <= at < len(keys) - 1 else ""}
        return {"at": at, "total": len(keys), **around}

    @app.get("/api/rollout")
    def rollout(key: str) -> dict[str, Any]:
        watched.look()
        return detail(watched, watched.place(key), vocabularies)

    @app.get("/api/group")
    def group(key: str) -> dict[str, Any]:
        watched.look()
        return side_by_side(watched, watched.place(key))


def _review(app: FastAPI, desk: reviews.Desk) -> None:
    @app.get("/api/review/next")
    def following(reviewer: str) -> dict[str, Any]:
        desk.watched.look()
        return desk.next(reviewer)

    @app.post("/api/review")
    def judge(
        item: str = Body(), reviewer: str = Body(), accept: bool = Body(strict=True), reason: str = Body()
    ) -> dict[str, Any]:
        desk.judge(item, reviewer, accept, reason)
        return {"written": True}

    @app.get("/api/review/summary")
    def summary() -> dict[str, Any]:
        desk.watched.look()
        found = {r.key: r for r in desk.watched.find()}
        return reviews.summary(reviews.read_reviews(desk.watched.root), found)
