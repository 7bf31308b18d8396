"""OpenEnv's `ResourceSession`s over the environment: white-box, where a trainer samples each turn, and loop-owning,
where an agent runs by itself and its model calls are captured token by token."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from openenv.core.env_server.mcp_types import Tool
from openenv.core.harness import ResourceSession, ResourceSessionFactory, ToolResult, TrainingTrace, VerifyResult
from pydantic import ValidationError

from inloop.env.capture import CaptureProxy
from inloop.env.client import InloopEnv, SessionLost, score
from inloop.env.models import InloopAction, InloopObservation
from inloop.errors import InloopError

Chat = dict[str, Any]


def which_task(task: Any) -> str:
    """The id in a prompt: trainers hand over nothing else. Raises InloopError when there is none."""
    if isinstance(task, str):
        return task
    for part in reversed(task) if isinstance(task, list) else [task]:
        if isinstance(part, Mapping) and part.get("task_id"):
            return str(part["task_id"])
    raise InloopError("the prompt names no task", fix="put `task_id` into its message: inloop.env.trl_tools.rows does")


class InloopSession(ResourceSession):  # type: ignore[misc]
    """One episode. White-box: the trainer's loop calls the tools."""

    def __init__(self, client: InloopEnv, task: Any, *, seed: int | None, episode_id: str | None) -> None:
        self._client = client.sync()
        self._calling = threading.Lock()
        self._closed = self._lost = False
        self._end: Any = None
        self._tried = self._failed = 0
        try:
            started = self._client.reset(task_id=which_task(task), seed=seed, episode_id=episode_id)
        except BaseException:
            self._client.close()
            raise
        self.first: InloopObservation = started.observation
        self._prompt = task if isinstance(task, list) else [{"role": "user", "content": ""}]

    def initial_messages(self) -> list[Chat]:
        """The trainer's prompt, with the instruction at the end of its last message."""
        *before, last = [{k: v for k, v in m.items() if k != "task_id"} for m in self._prompt]
        content = "\n\n".join(text for text in (last.get("content"), self.first.text) if text)
        return [*before, {**last, "content": content}]

    def list_tools(self) -> list[Tool]:
        functions = [t["function"] for t in self.first.tools]
        return [Tool(name=f["name"], description=f["description"], input_schema=f["parameters"]) for f in functions]

    def schemas(self) -> list[Chat]:
        """The tools in OpenAI's form."""
        return list(self.first.tools)

    def call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """A model's mistake is a result; a lost session raises."""
        self._tried += 1
        if self._end is not None:
            return ToolResult(data="the episode is over", done=True, error="the episode is over")
        try:
            action = InloopAction(tool=name, **arguments)
        except (ValidationError, TypeError) as error:
            self._failed += 1
            why = f"error: {name} can't be called like that: {error}".partition("\n")[0]
            return ToolResult(data=why, error=why)
        result = self._step(action)
        seen = result.observation
        self._failed += seen.is_error
        told = {"reward": result.reward}
        return ToolResult(
            data=seen.text, done=result.done, metadata=told, error=seen.text if seen.is_error else None
        )  # fmt: skip

    def _step(self, action: InloopAction) -> Any:
        try:
            with self._calling:
                if self._closed:
                    raise SessionLost("the session is closed")
                result = self._client.step(action)
        except SessionLost:
            self._lost = True
            raise
        if result.done:
            self._end = result
        return result

    def verify(self, transcript: list[Chat], final_state: Any | None = None) -> VerifyResult:
        """The hidden tests' verdict, on what is there if nothing was submitted; None where nobody can know."""
        if self._end is None and not self._lost:
            with contextlib.suppress(SessionLost):
                self._step(InloopAction(tool="submit"))
        if self._lost or self._end is None:
            return VerifyResult(env_reward=None, done=True, metrics={"session_lost": 1.0})
        told = self._end.metadata or {}
        metrics = {"fraction": told.get("fraction"), "tool_calls": self._tried, "tool_errors": self._failed}
        return VerifyResult(
            env_reward=score(self._end), done=True, metrics=metrics,
            artifacts={"verdict": told.get("verdict"), "stop": self._end.observation.stop},
        )  # fmt: skip

    def close(self) -> None:
        """Idempotent; from any thread: a call that runs ends as a lost session."""
        if not self._closed:
            self._closed = True
            self._client.disconnect()
            with self._calling:
                self._client.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where an agent's model calls go."""

    url: str
    """OpenAI's form, with /v1."""
    key: str
    """The API key; it names the session."""
    model: str


Agent = Callable[[Endpoint, InloopSession], None]
"""Runs by itself until it is done; called in a thread of its own."""


class AgentSession(InloopSession):
    """Loop-owning: an agent works by itself; what it said is read afterwards, exactly as the engine sampled it."""

    def __init__(
        self, client: InloopEnv, task: Any, *, proxy: CaptureProxy, agent: Agent, calls: int, **kw: Any
    ) -> None:
        super().__init__(client, task, **kw)
        self._captured = proxy.open(calls)
        self._proxy = proxy
        self._error: BaseException | None = None
        endpoint = Endpoint(url=proxy.url, key=self._captured.session_id, model=proxy.model)
        self._thread = threading.Thread(target=self._run, args=(agent, endpoint), name="agent", daemon=True)
        self._thread.start()

    def _run(self, agent: Agent, endpoint: Endpoint) -> None:
        try:
            agent(endpoint, self)
        except BaseException as error:
            self._error = error

    def wait_for_completion(self, timeout_s: float | None = None) -> int:
        """Until the agent is done, by default as long as the episode may take. Raises TimeoutError, or what the
        agent raised."""
        budget = self.first.budget
        most = budget.get("episode_seconds", 600.0) + budget.get("verify_seconds", 120.0)
        self._thread.join(most if timeout_s is None else timeout_s)
        if self._thread.is_alive():
            raise TimeoutError("the agent is still at work")
        if self._error is not None:
            raise self._error
        return 0

    def fetch_training_trace(self) -> TrainingTrace:
        return self._proxy.trace(self._captured)

    def fetch_proxy_trace(self) -> list[Any]:
        entries: list[Any] = self.fetch_training_trace().to_trace_entries()
        return entries

    def close(self) -> None:
        self._proxy.end(self._captured)
        super().close()


@dataclass(kw_only=True)
class SessionFactory(ResourceSessionFactory[InloopSession]):  # type: ignore[misc]
    """White-box sessions: `HarnessRolloutWorker(harness_session_factory=partial(SessionFactory, url=...),
    harness_adapter=MCPHarnessAdapter())`."""

    url: str
    token: str | None = None
    wait_s: float = 60.0

    def client(self) -> InloopEnv:
        return InloopEnv(self.url, token=self.token, wait_s=self.wait_s)

    def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> InloopSession:
        return InloopSession(self.client(), task, seed=seed, episode_id=episode_id)


@dataclass(kw_only=True)
class AgentSessionFactory(SessionFactory):
    """Loop-owning sessions: `HarnessRolloutWorker(harness_session_factory=partial(AgentSessionFactory, url=..., ...))`;
    the worker adds `sampling`."""

    llm_url: str
    """vLLM, or `inloop engine serve`: an engine that returns token ids."""
    model: str
    llm_token: str | None = None
    sampling: dict[str, Any] | None = None
    agent: Agent | None = None
    """None is `inloop.env.agent.chat_loop`."""
    max_calls: int = 8
    """Model calls of an episode."""
    max_turn_tokens: int = 512

    def __post_init__(self) -> None:
        self._proxy = CaptureProxy(
            llm_url=self.llm_url, model=self.model, token=self.llm_token, sampling=self.sampling,
            max_turn_tokens=self.max_turn_tokens,
        )  # fmt: skip

    def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> AgentSession:
        from inloop.env.agent import chat_loop

        return AgentSession(
            self.client(), task, proxy=self._proxy, agent=self.agent or chat_loop, calls=self.max_calls, seed=seed,
            episode_id=episode_id,
        )  # fmt: skip

    def close(self) -> None:
        self._proxy.close()
