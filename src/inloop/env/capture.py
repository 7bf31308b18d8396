"""OpenEnv's capture proxy on loopback: between an agent and an engine, it keeps each call's exact token ids."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Any

from inloop.engine.server import bind
from inloop.errors import InloopError
from inloop.harness.capture import closing_with_server


class CaptureProxy:
    """One for all sessions of a process; a session's id is its agent's API key."""

    def __init__(
        self, *, llm_url: str, model: str, token: str | None, sampling: dict[str, Any] | None, max_turn_tokens: int
    ) -> None:
        import uvicorn
        from openenv.core.harness.capture.server import create_app

        self.model, self.sampling = model, sampling
        self._app = create_app(
            llm_url=f"{llm_url.rstrip('/').removesuffix('/v1')}/v1",
            model=model,
            api_key=token,
            max_output_tokens=max_turn_tokens,
            admin_key=secrets.token_urlsafe(24),  # an agent must not open or read sessions
        )
        self._registry = self._app.state.registry
        self._app.router.lifespan_context = closing_with_server(self._app.state.inference)
        self._socket = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._server = uvicorn.Server(uvicorn.Config(self._app, log_level="error", access_log=False))
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="capture", daemon=True
        )  # fmt: skip
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise InloopError("the capture proxy did not start", fix="look for a missing package")
            time.sleep(0.01)

    def open(self, calls: int) -> Any:
        """A session of at most `calls` model calls."""
        return self._registry.create(
            secrets.token_hex(16),
            sampling=self.sampling,
            capture_level="tokens",
            purpose="train",
            max_model_calls=calls,
        )

    def trace(self, session: Any) -> Any:
        """OpenEnv's `TrainingTrace` of what was said so far; OpenEnv calls an empty one invalid, which would end TRL's
        worker, but an agent may well be stopped before it has said anything."""
        from openenv.core.harness import TrainingTrace
        from openenv.core.harness.capture import to_training_trace
        from openenv.core.harness.capture.export import export_session

        if not session.graph.nodes():
            return TrainingTrace(turns=[])
        return to_training_trace(session.graph, export_session(session, include_messages=True, capture_level="tokens"))

    def end(self, session: Any) -> None:
        """Later calls of its agent are refused."""
        self._registry.delete(session.session_id)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
