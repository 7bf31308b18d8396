"""ASGI layers around OpenEnv's app: who may come in, and what becomes of a session whose socket goes."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CURRENT: ContextVar[Connection | None] = ContextVar("connection", default=None)
"""The socket that is being served."""


class Connection:
    """A socket that can be watched while its handler waits for a step: OpenEnv reads only between steps, so that
    without this a client that died would keep its slot until the step is done."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._reading: asyncio.Task[Event] | None = None
        """A frame that is read ahead while a step runs."""
        self.gone = False

    async def receive(self) -> Event:
        reading, self._reading = self._reading, None
        event = await (reading or self._receive())
        self.gone = self.gone or event["type"] == "websocket.disconnect"
        return event

    async def send(self, event: Event) -> None:
        """To a client that is gone nothing is sent: the handler finds out at its next read."""
        if self.gone:
            return
        try:
            await self._send(event)
        except Exception:
            self.gone = True

    def watch(self, on_gone: Callable[[], None]) -> None:
        """Call `on_gone` when the client goes before the handler reads again."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._look(on_gone))

    async def _look(self, on_gone: Callable[[], None]) -> Event:
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            self.gone = True
            on_gone()
        return event

    async def end(self, reason: str) -> None:
        """Close from this side; the handler then ends its session."""
        await self.send({"type": "websocket.close", "code": 1008, "reason": reason})

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()


class Watched:
    """Gives every WebSocket a `Connection`."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        connection = Connection(receive, send)
        CURRENT.set(connection)
        try:
            await self.app(scope, connection.receive, connection.send)
        finally:
            connection.close()


class Guard:
    """Asks for the token on every route, as `Authorization: Bearer` or `X-Inloop-Token` (for proxies that keep the
    first for themselves). Without a token, requests that a foreign web page could make are refused."""

    def __init__(self, app: App, *, token: str | None, hosts: frozenset[str] | None = None) -> None:
        """`hosts`: names that a request may be addressed to where there is no token; None is any."""
        self.app, self.token, self.hosts = app, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._may(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
        else:
            head = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": head})
            await send({"type": "http.response.body", "body": b'{"detail": "a token is needed"}'})

    def _may(self, scope: Scope) -> bool:
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        if self.token is not None:
            given = headers.get("x-inloop-token") or _credential(headers.get("authorization", ""))
            return secrets.compare_digest(given.encode(), self.token.encode())
        host, origin = headers.get("host", ""), headers.get("origin")
        ours = self.hosts is None or (urlsplit(f"//{host}").hostname or "") in self.hosts
        return ours and (origin is None or urlsplit(origin).netloc == host)


def _credential(header: str) -> str:
    """A bearer token, or the password of HTTP's basic form, which is what a URL can carry."""
    kind, _, value = header.partition(" ")
    if kind.lower() != "basic":
        return value
    try:
        return base64.b64decode(value).decode("utf-8", "replace").partition(":")[2]
    except ValueError:
        return ""
