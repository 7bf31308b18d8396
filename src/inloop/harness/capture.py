"""What an external agent says and hears, token by token: OpenEnv's capture proxy between it and the engine.

The proxy listens on a unix socket that is mounted into the agent's sandbox, which has no network: the agent can reach
this proxy and nothing else. Its API key is its session."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from inloop.engine.base import Completion, Engine, EngineInfo, Sampling
from inloop.errors import InloopError
from inloop.trace.trajectory import Node
from inloop.types import Call, Message, Text, message

SOCKET = "api.sock"
START_SECONDS = 60.0


class CaptureServer:
    """OpenEnv's capture app in a thread of its own: on a unix socket at `uds`, else on a free port of loopback."""

    def __init__(
        self, *, llm_url: str, model: str, token: str | None, max_turn_tokens: int, uds: Path | None = None
    ) -> None:
        import uvicorn

        from inloop.engine.server import bind

        try:
            from openenv.core.harness.capture.server import create_app
        except ImportError:
            raise InloopError("captured agents need OpenEnv", fix="pip install 'inloop[env,serve]'") from None
        app = create_app(
            llm_url=f"{llm_url.rstrip('/').removesuffix('/v1')}/v1",
            model=model,
            api_key=token,
            max_output_tokens=max_turn_tokens,
            admin_key=secrets.token_urlsafe(24),  # an agent must not open or read sessions
        )
        self.registry = app.state.registry
        app.router.lifespan_context = closing_with_server(app.state.inference)
        self._socket = None if uds else bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1" if self._socket else ""
        config = uvicorn.Config(app, uds=str(uds) if uds else None, log_level="error", access_log=False)
        self._server = uvicorn.Server(config)
        sockets = [self._socket] if self._socket else None
        self._thread = threading.Thread(target=self._server.run, args=(sockets,), name="capture", daemon=True)
        self._thread.start()
        self._await()

    def _await(self) -> None:
        until = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise InloopError("the capture proxy did not start", fix="look for a full disk or a missing package")
            time.sleep(0.01)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        if self._socket:
            self._socket.close()


class CaptureGateway:
    """Engine -> HTTP server on loopback (with a token) -> capture proxy on a unix socket; one for all sessions."""

    def __init__(self, engine: Engine, tokenizer: Path, *, temperature: float, max_turn_tokens: int) -> None:
        from inloop.engine.server import EngineServer

        self._engine = engine
        self.model = engine.info().model
        self.temperature = temperature
        token = secrets.token_urlsafe(24)
        self._server = EngineServer(_submitting(engine, tokenizer), token=token).start()
        self.folder = Path(tempfile.mkdtemp(prefix="inloop-capture-"))
        self.folder.chmod(0o755)
        self._proxy = CaptureServer(
            llm_url=self._server.url,
            model=self.model,
            token=token,
            max_turn_tokens=max_turn_tokens,
            uds=self.folder / SOCKET,
        )
        (self.folder / SOCKET).chmod(0o666)
        self._registry = self._proxy.registry

    def open(self, name: str, *, max_calls: int) -> str:
        """A new session; returns the API key that the agent is given. Sampling is the harness's, not the agent's."""
        sampling = {"temperature": self.temperature, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
        session = self._registry.create(
            secrets.token_hex(16),
            sampling=sampling,
            max_model_calls=max_calls,
            purpose="train",
            rollout=name,
            weight_version=self._engine.info().weight_version,
        )
        key: str = session.session_id
        return key

    def finish(self, key: str) -> Capture:
        """End the session and read what it holds; later calls with this key are refused."""
        session = self._registry.get(key)
        self._registry.delete(key)
        return read_capture(session)

    def close(self) -> None:
        self._proxy.close()
        self._server.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def closing_with_server(client: Any) -> Any:
    """OpenEnv leaves its HTTP client open when its server ends."""

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        yield
        await client.aclose()

    return lifespan


class Capture:
    """A session's calls as nodes of a forest: ids exactly as the engine saw and gave them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.calls = 0
        self.forks = 0
        """Calls whose prompt does not continue an earlier one: a new context."""
        self.over_budget = False
        self._ends: list[tuple[list[int], str]] = []

    def add(self, turn: Any, weight_version: int | None) -> None:
        """One model call; its parent is the call whose tokens are the longest prefix of its prompt."""
        prompt, sampled = list(turn.prompt_ids), list(turn.sampled_ids)
        parent, held = None, 0
        for ids, node_id in self._ends:
            if held < len(ids) <= len(prompt) and prompt[: len(ids)] == ids:
                parent, held = node_id, len(ids)
        self.forks += parent is None and self.calls > 0
        known = self._messages_before(parent)
        shown = [_said(m) for m in turn.request_messages[known:]] or [message("user", "", origin="harness")]
        for i, said in enumerate(shown):
            last = i == len(shown) - 1
            parent = self._node(parent, said, prompt[held:] if last else None)
        answer = self._node(parent, _answer(turn.response_message), sampled)
        node = self.nodes[-1]
        node.sampled, node.logprobs, node.weight_version = True, list(turn.sampled_logprobs or []), weight_version
        self._ends.append((prompt + sampled, answer))
        self.calls += 1

    def _node(self, parent: str | None, said: Message, ids: list[int] | None) -> str:
        node = Node(id=f"n{len(self.nodes)}", parent=parent, message=said, token_ids=ids or None)
        self.nodes.append(node)
        return node.id

    def _messages_before(self, node_id: str | None) -> int:
        """How many messages of a request its parent's path already holds."""
        index, count = {n.id: n for n in self.nodes}, 0
        while node_id is not None:
            count += 1
            node_id = index[node_id].parent
        return count


def read_capture(session: Any) -> Capture:
    capture = Capture()
    for turn in sorted(session.graph.nodes(), key=lambda n: n.index):
        capture.add(turn, session.metadata.get("weight_version"))  # when it began: the oldest that it can be
    capture.over_budget = bool(getattr(session, "budget_stop_count", 0))
    return capture


def _said(raw: dict[str, Any]) -> Message:
    role = raw.get("role", "user")
    text = raw.get("content")
    if isinstance(text, list):
        text = "".join(part.get("text", "") for part in text if isinstance(part, dict))
    if role == "assistant":
        return replace(_answer(raw), origin="harness")
    if role == "tool":
        return message("tool", text or "", call_id=raw.get("tool_call_id"))
    return message("system" if role in ("system", "developer") else "user", text or "")


def _answer(raw: dict[str, Any]) -> Message:
    import json

    parts: list[Any] = [Text(text=raw["content"])] if raw.get("content") else []
    for call in raw.get("tool_calls") or ():
        function = call.get("function", {})
        text = function.get("arguments") or ""
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = None
        arguments = arguments if isinstance(arguments, dict) else None
        parts.append(Call(id=call.get("id", ""), name=function.get("name", ""), arguments=arguments, raw=text))
    return Message(role="assistant", parts=tuple(parts))


def _submitting(engine: Engine, tokenizer: Path) -> Any:
    return engine if hasattr(engine, "submit") else _Submitting(engine, tokenizer)


class _Submitting:
    """The embedded engine's non-blocking form over any engine, so that the server can stand before it."""

    def __init__(self, engine: Engine, tokenizer: Path) -> None:
        self._engine, self._tokenizer = engine, tokenizer
        self._pool = ThreadPoolExecutor(32, thread_name_prefix="submit")

    def info(self) -> EngineInfo:
        info = self._engine.info()
        return replace(info, meta={"folder": str(self._tokenizer), **info.meta})

    def submit(
        self, prompt_ids: Any, sampling: Sampling, *, conversation: str | None = None, on_token: Any = None
    ) -> tuple[int, Future[Completion]]:
        return 0, self._pool.submit(self._engine.generate, prompt_ids, sampling, conversation=conversation)

    def abort(self, handle: int) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
