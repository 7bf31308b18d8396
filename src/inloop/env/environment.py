"""The OpenEnv environment: typed on /ws, the same tools on /mcp, the Task API; one instance a session."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

from inloop import __version__
from inloop.env.catalog import TYPES, Catalog
from inloop.env.connection import Connection
from inloop.env.episode import Cancelled, CodingEpisode, Outcome, Place
from inloop.env.models import InloopAction, InloopObservation, InloopState
from inloop.env.sessions import Sessions
from inloop.errors import InloopError
from inloop.harness.tools import schemas
from inloop.types import Verdict

T = TypeVar("T")
WATCH_AFTER = 0.1
"""Seconds that a step runs before its client's socket is watched: most are done before."""
QUICK = frozenset({"read"})
NAME = "inloop_env"


class NoEpisode(InloopError):
    """A step before any reset; after a lost socket that is what a fresh session answers."""


@dataclass(frozen=True, kw_only=True)
class Hall:
    """What all environments of a server share."""

    catalog: Catalog
    place: Place
    sessions: Sessions
    pool: ThreadPoolExecutor
    """A thread for each session, so that no step waits for another's."""
    quick: ThreadPoolExecutor
    """Few threads, for tools that start nothing: many would only wait for the interpreter's lock."""
    message_bytes: int
    owner: str = "env"


class InloopEnvironment(Environment[InloopAction, InloopObservation, InloopState]):  # type: ignore[misc]
    """Built for each session and, by OpenEnv, for each stateless request as well: building it does nothing."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, hall: Hall) -> None:
        super().__init__()
        self.hall = hall
        self.session_id = ""
        self.connection: Connection | None = None
        self.opened = self.used = time.time()
        self.episode: CodingEpisode | None = None
        self.episode_id: str | None = None
        self._turn = asyncio.Lock()
        self._ended = False

    # simulation protocol

    async def reset_async(self, seed: int | None = None, episode_id: str | None = None, **which: Any) -> Any:
        return await self._in_thread(lambda: self.reset(seed=seed, episode_id=episode_id, **which))

    async def step_async(self, action: InloopAction, timeout_s: float | None = None, **kw: Any) -> Any:
        pool = self.hall.quick if action.tool in QUICK else self.hall.pool
        return await self._in_thread(lambda: self.step(action, timeout_s=timeout_s), pool)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **which: Any) -> InloopObservation:
        """`which`: task_id, or split and index. Raises InloopError for another key or an unknown task."""
        if unknown := set(which) - {"task_id", "split", "index"}:
            raise InloopError(f"reset takes no {', '.join(sorted(unknown))}", fix="task_id, split, index, seed")
        task = self.hall.catalog.choose(**which, seed=seed)
        self._leave()
        episode = CodingEpisode(self.hall.place, task, owner=f"{self.hall.owner} {self.session_id[:8]} {task.id}")
        self.episode, self.episode_id = episode, episode_id or uuid.uuid4().hex
        if self._ended:
            episode.close()
            raise Cancelled("the session was ended")
        self.hall.sessions.count("resets_total")
        limits, place = task.limits, self.hall.place
        return InloopObservation(
            text=task.instruction,
            task_id=task.id,
            tools=schemas(place.harness.tools),
            budget={
                "episode_seconds": round(episode.seconds_left, 3),
                "command_seconds": limits.command_seconds,
                "verify_seconds": task.verify.wall_seconds,
                "steps": place.max_steps,
                "output_chars": place.harness.observation_chars,
                "message_bytes": self.hall.message_bytes,
            },
        )

    def step(self, action: InloopAction, timeout_s: float | None = None, **kw: Any) -> InloopObservation:
        """Raises NoEpisode before a reset, Cancelled when the session is ended meanwhile."""
        if self.episode is None:
            raise NoEpisode("no episode: call reset first (a new connection starts without one)")
        began, over = time.monotonic(), self.episode.stop is not None
        outcome = self.episode.step(action.tool, action.arguments(), action.timeout_s or timeout_s)
        self.hall.sessions.count("steps_total", action.tool)
        self.hall.sessions.count("step_seconds_total", action.tool, time.monotonic() - began)
        if outcome.stop and not over:
            self._count_end(outcome)
        return InloopObservation(
            text=outcome.text, is_error=outcome.is_error, stop=outcome.stop or "", done=outcome.stop is not None,
            reward=outcome.reward, metadata=_told(outcome),
        )  # fmt: skip

    @property
    def state(self) -> InloopState:
        episode = self.episode
        if episode is None:
            return InloopState(episode_id=self.episode_id)
        return InloopState(
            episode_id=self.episode_id, step_count=episode.steps, task_id=episode.task.id, split=episode.task.split,
            done=episode.stop is not None, stop=episode.stop or "", seconds_left=round(episode.seconds_left, 3),
            reward=episode.verdict.value if episode.verdict else None,
        )  # fmt: skip

    def close(self) -> None:
        """Idempotent, from any thread; ends a running command. Never raises."""
        self._ended = True
        if self.session_id:
            self.hall.sessions.remove(self.session_id)
            self._leave()
        elif self.episode is not None:  # of one stateless request: OpenEnv closes it on the event loop
            self.hall.pool.submit(self._leave)

    # the rest of OpenEnv's surface

    def get_metadata(self) -> EnvironmentMetadata:
        tasks = sum(len(rows) for rows in self.hall.catalog.splits.values())
        return EnvironmentMetadata(
            name=NAME,
            description=f"{tasks} coding tasks in isolated sandboxes, judged by hidden tests",
            version=__version__,
        )

    def list_splits(self) -> list[dict[str, str]]:
        return [{"name": name, "type": TYPES.get(name, "train")} for name in self.hall.catalog.splits]

    def num_tasks(self, split: str) -> int:
        return len(self._rows(split))

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        return self.get_task_range(split)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """With the instruction, so that a prompt can be made of it."""
        self._rows(split)
        told = self.hall.catalog.describe(split, index)
        return told | {"instruction": self.hall.catalog.load(told["id"]).instruction}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        return [self.hall.catalog.describe(split, i) for i in range(len(self._rows(split)))[start:stop]]

    def _rows(self, split: str) -> list[Any]:
        """An unknown split is the client's mistake: IndexError is what OpenEnv answers with 400."""
        try:
            return self.hall.catalog.rows(split)
        except InloopError as error:
            raise IndexError(str(error)) from None

    @cached_property
    def mcp_server(self) -> Any:
        from inloop.env.mcp import tool_server

        return tool_server(self)

    # sessions

    def attach(self, session_id: str, connection: Connection | None) -> None:
        """It belongs to a session from now on; `connection` is None for one that HTTP requests share."""
        self.session_id, self.connection = session_id, connection
        self.hall.sessions.add(session_id, self)

    @property
    def busy(self) -> bool:
        return self._turn.locked()

    @property
    def idle_seconds(self) -> float:
        return 0.0 if self.busy else time.time() - self.used

    def describe(self) -> dict[str, Any]:
        state, lease = self.state, self.episode.lease if self.episode and not self.episode.returned else ""
        return {
            "lease": lease,
            "task_id": state.task_id,
            "episode_id": state.episode_id,
            "steps": state.step_count,
            "stop": state.stop,
            "seconds_left": state.seconds_left,
            "busy": self.busy,
            "socket": self.connection is not None,
            "age_seconds": round(time.time() - self.opened, 1),
            "idle_seconds": round(self.idle_seconds, 1),
        }

    def abandon(self) -> None:
        """Its client is gone while something runs in it: end that, without waiting for it here."""
        self._ended = True
        self.hall.sessions.count("abandoned_total")
        self.hall.pool.submit(self._leave)

    def _leave(self) -> None:
        if self.episode is not None:
            with contextlib.suppress(Exception):  # what can't be closed is the janitor's
                self.episode.close()

    async def _in_thread(self, work: Callable[[], T], pool: ThreadPoolExecutor | None = None) -> T:
        """One call at a time; the socket is watched while it runs."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            running = loop.run_in_executor(pool or self.hall.pool, work)
            watch = None
            if self.connection is not None:
                watch = loop.call_later(WATCH_AFTER, self.connection.watch, self.abandon)
            try:
                return await running
            finally:
                self.used = time.time()
                if watch is not None:
                    watch.cancel()

    def _count_end(self, outcome: Outcome) -> None:
        assert outcome.stop is not None
        self.hall.sessions.count("episodes_total", outcome.stop.value)
        if outcome.verdict is not None:
            self.hall.sessions.count("verdicts_total", outcome.verdict.verdict.value)


def _told(outcome: Outcome) -> dict[str, Any]:
    """What a trainer wants to know of the verdict; no name of a hidden test is in it."""
    verdict = outcome.verdict
    if verdict is None:
        return {}
    return {
        "verdict": verdict.verdict.value,
        "fraction": verdict.fraction,
        "unscorable": verdict.verdict is Verdict.FAULT,
        "mode": verdict.mode,
        "seconds": verdict.seconds,
    }
