"""`inloop engine serve`: an engine and its server together."""

from __future__ import annotations

import json
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.server import EngineServer, is_loopback
from inloop.errors import InloopError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    model: str
    host: str = "127.0.0.1"
    port: int = 0
    dtype: str = "auto"
    threads: int = 1
    slots: int = 32
    max_model_len: int | None = None
    adapter: str | None = None
    chat_template: str | None = None
    """A jinja file."""
    token: str | None = None
    """None asks for none on loopback, and makes one elsewhere."""
    open_to_all: bool = False


def example(url: str, model: str, token: str | None) -> str:
    """A line for the shell that asks a served model something."""
    auth = f" -H 'Authorization: Bearer {token}'" if token else ""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Say hello."}]})
    return f"curl {url}/v1/chat/completions{auth} -H 'Content-Type: application/json' -d '{body}'"


class Running:
    """A served engine, for the command that waits on it."""

    def __init__(self, server: EngineServer, model: str) -> None:
        self.url, self.token, self.model = server.url, server.token, model

    @property
    def example(self) -> str:
        return example(self.url, self.model, self.token)

    def wait(self) -> None:
        """Until Ctrl-C or SIGTERM."""
        ended = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
        while not ended.wait(0.5):
            pass


@contextmanager
def serving(settings: Settings) -> Iterator[Running]:
    template = _read(settings.chat_template)
    token = settings.token
    if token is None and not is_loopback(settings.host) and not settings.open_to_all:
        token = secrets.token_urlsafe(24)
    with EmbeddedEngine.start(
        settings.model,
        dtype=settings.dtype,
        threads=settings.threads,
        slots=settings.slots,
        max_model_len=settings.max_model_len,
    ) as engine:
        if settings.adapter is not None:
            engine.load_adapter(Path(settings.adapter), 1)
        server = EngineServer(engine, host=settings.host, port=settings.port, token=token, chat_template=template)
        with server:
            yield Running(server, settings.model)


def _read(path: str | None) -> str | None:
    try:
        return None if path is None else Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InloopError(f"--chat-template {path}: {error}", fix="give a jinja text file") from error
