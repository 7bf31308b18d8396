"""An OpenAI-compatible server on loopback that says what a test wants it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Asked = dict[str, Any]
Answer = tuple[int, dict[str, Any]]


def reply(usage: dict[str, int] | None = None, **fields: Any) -> dict[str, Any]:
    """The body of a chat completion with one message."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None, **fields}}
    body = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return body if usage is None else {**body, "usage": usage}


def in_order(*answers: Answer) -> Callable[[Asked], Answer]:
    """One after the other, the last for ever."""
    left = list(answers)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def served(answer: Callable[[Asked], Answer]) -> Iterator[tuple[str, list[Asked]]]:
    """Yields its address and what it was asked."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(request)
            status, body = answer(request)
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            return None

    with listening(Handler) as url:
        yield f"{url}/v1", asked


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serves on a free port of loopback until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
