"""What stands before the routes: the token, the size of a body, the queue, and the count of it all."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from inloop.engine.bodies import ApiError
from inloop.serve.metrics import Metrics

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
SAMPLING = ("/v1/chat/completions", "/v1/completions", "/v1/responses")
KNOWN = (*SAMPLING, "/v1/models", "/health", "/metrics", "/swap", "/tokenize", "/detokenize")
"""Routes that metrics name; the rest is one label, or a scan would make thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    body_bytes: int = 8 << 20
    in_flight: int = 64
    """Requests that sample, or wait for a slot of the engine; one more is told to come back."""
    upload_seconds: float = 30.0
    """For the whole body."""
    stall_seconds: float = 60.0
    """For a client to take what was sent; one that reads nothing for so long is given up."""


class Gone(Exception):
    """The client went away, or took nothing for too long."""


class Guard:
    """An ASGI app around another one."""

    def __init__(self, app: App, *, token: str | None, limits: Limits, metrics: Metrics) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self._token = token
        self.draining = False
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no websockets, no lifespan
        out = _Out(send, self.limits.stall_seconds)
        route = scope["path"] if scope["path"] in KNOWN else "other"
        began = time.monotonic()
        try:
            replay = await self._admitted(scope, receive)
            began = time.monotonic()
            await self._within(scope, replay, out)
        except ApiError as error:
            await out.error(error)
        except Gone:
            out.status = out.status or 499
        finally:
            self._count(route, out, began)

    async def _admitted(self, scope: Scope, receive: Receive) -> Receive:
        """The request with its whole body read. Raises ApiError for one that is not let in."""
        if scope["path"] != "/health":
            self._authorised(dict(scope["headers"]))
        if self.draining and (scope["path"] in (*SAMPLING, "/health")):
            raise ApiError(503, "the server is shutting down", kind="server_error", code="shutting_down")
        return _replayed(await self._body(dict(scope["headers"]), receive), receive)

    async def _within(self, scope: Scope, receive: Receive, out: _Out) -> None:
        if scope["path"] not in SAMPLING:
            await self.app(scope, receive, out.send)
            return
        if self.in_flight >= self.limits.in_flight:
            raise ApiError(429, "the queue is full", kind="rate_limit_error", code="rate_limit_exceeded")
        self.in_flight += 1
        self.metrics.in_flight.set(self.in_flight)
        try:
            await self.app(scope, receive, out.send)
        finally:
            self.in_flight -= 1
            self.metrics.in_flight.set(self.in_flight)

    def _authorised(self, headers: dict[bytes, bytes]) -> None:
        if self._token is None:
            return
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ").removeprefix(b"bearer ")
        if not secrets.compare_digest(given, self._token.encode()):
            raise ApiError(401, "a bearer token is needed", kind="authentication_error", code="invalid_api_key")

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self.limits.body_bytes
        told = headers.get(b"content-length", b"0")
        if told.isdigit() and int(told) > most:
            raise _too_large(most)
        parts = bytearray()
        try:
            async with asyncio.timeout(self.limits.upload_seconds):
                while True:
                    got = await receive()
                    if got["type"] == "http.disconnect":
                        raise Gone
                    parts += got.get("body", b"")
                    if len(parts) > most:
                        raise _too_large(most)
                    if not got.get("more_body"):
                        return bytes(parts)
        except TimeoutError:
            raise ApiError(408, "the body did not arrive in time", code="request_timeout") from None

    def _count(self, route: str, out: _Out, began: float) -> None:
        self.metrics.requests.labels(route, str(out.status or 499)).inc()
        self.metrics.seconds.labels(route).observe(time.monotonic() - began)
        if out.first is not None:
            self.metrics.first_byte.labels(route).observe(max(0.0, out.first - began))


def _too_large(most: int) -> ApiError:
    return ApiError(413, f"the body is larger than {most} bytes", code="request_too_large")


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class _Out:
    """The way back to the client: remembers the status, and gives up on one that takes nothing."""

    def __init__(self, send: Send, stall_seconds: float) -> None:
        self._send, self._stall = send, stall_seconds
        self.status: int | None = None
        self.first: float | None = None

    async def send(self, event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            self.status = event["status"]
        elif self.first is None:
            self.first = time.monotonic()
        try:
            async with asyncio.timeout(self._stall):
                await self._send(event)
        except TimeoutError:
            raise Gone from None

    async def error(self, error: ApiError) -> None:
        if self.status is not None:  # too late for another answer
            return
        body = json.dumps(error.body()).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if error.status in (408, 413):
            headers.append((b"connection", b"close"))  # the rest of the body is not read
        if error.status in (429, 503):
            headers.append((b"retry-after", b"1"))
        if error.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await self.send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})
