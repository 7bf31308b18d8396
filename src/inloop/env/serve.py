"""`inloop env serve`: the application on a thread of its own, and its end that leaves nothing behind."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import uvicorn

from inloop.engine.server import bind, is_loopback
from inloop.env.app import EnvSettings, build_app
from inloop.errors import InloopError

PING_SECONDS = 20.0
"""A client that does not answer for twice this long is gone."""


class EnvServer:
    """`with EnvServer(settings) as server: ... server.url`."""

    def __init__(self, settings: EnvSettings, *, ping_seconds: float = PING_SECONDS) -> None:
        """Raises InloopError with the fix: no taskset, no sandbox, a port that is taken."""
        self.settings = settings
        local = is_loopback(settings.host)
        hosts = frozenset({"127.0.0.1", "localhost", "::1", settings.host}) if local else None
        app, self.server = build_app(settings, hosts=hosts)
        self._socket = bind(settings.host, settings.port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, timeout_graceful_shutdown=5, lifespan="on",
            ws_max_size=settings.message_bytes, ws_per_message_deflate=False,
            ws_ping_interval=ping_seconds, ws_ping_timeout=ping_seconds,
        )  # fmt: skip
        self._uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._uvicorn.run, args=([self._socket],), name="env", daemon=True)

    @property
    def url(self) -> str:
        host = self.settings.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def sessions(self) -> dict[str, Any]:
        return self.server.hall.sessions.listed()

    def start(self) -> EnvServer:
        self._thread.start()
        while not self._uvicorn.started:
            if not self._thread.is_alive():
                raise InloopError(f"the server did not start on {self.url}")
            time.sleep(0.01)
        return self

    def wait(self) -> None:
        """Until Ctrl-C or SIGTERM."""
        ended = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
        while self._thread.is_alive() and not ended.wait(0.5):
            pass

    def close(self) -> None:
        """Commands that run are ended first, so that nobody waits for them."""
        self.server.shut()
        self._uvicorn.should_exit = True
        self._thread.join(timeout=20)
        self.server.shut()
        self._socket.close()

    def __enter__(self) -> EnvServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
