"""OpenEnv's capture proxy on loopback: between an agent and an engine, it keeps each call's exact token ids."""

from __future__ import annotations

import secrets
from typing import Any

from inloop.harness.capture import CaptureServer


class CaptureProxy:
    """One for all sessions of a process; a session's id is its agent's API key."""

    def __init__(
        self, *, llm_url: str, model: str, token: str | None, sampling: dict[str, Any] | None, max_turn_tokens: int
    ) -> None:
        self.model, self.sampling = model, sampling
        self._server = CaptureServer(llm_url=llm_url, model=model, token=token, max_turn_tokens=max_turn_tokens)
        self._registry, self.url = self._server.registry, self._server.url

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
        self._server.close()
