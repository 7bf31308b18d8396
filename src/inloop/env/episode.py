"""One episode on the server's side: a task, its sandbox, its tools, its deadlines, its verdict. Knows no OpenEnv."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from inloop.errors import Fault, InloopError, SandboxFault
from inloop.harness.config import HarnessConfig
from inloop.harness.sensors import sense, with_findings
from inloop.harness.tools import Toolbox
from inloop.sandbox.base import Backend, Diff, Sandbox, SandboxSpec
from inloop.tasks.task import Task
from inloop.types import Reward, StopReason, Verdict
from inloop.verify.verifier import Verifier


@dataclass(kw_only=True)
class Place:
    """What all episodes of a server share."""

    backend: Backend
    verifier: Verifier = field(default_factory=Verifier)
    harness: HarnessConfig = field(default_factory=HarnessConfig)
    max_steps: int = 100
    judging: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(os.cpu_count() or 1))
    """Verifications at once: they need the processor, and a crowd of them would meet its own time limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    text: str
    is_error: bool = False
    stop: StopReason | None = None
    """The episode is over."""
    verdict: Reward | None = None

    @property
    def reward(self) -> float:
        """Finite on every step: 0 before the end, and 0 where nothing could be measured (`unscorable`)."""
        return (self.verdict.value or 0.0) if self.verdict else 0.0


class Cancelled(InloopError):
    """The session was ended from outside while something ran in it."""


class CodingEpisode:
    """`step` from one thread at a time; `cancel` and `close` from any thread at any time."""

    def __init__(self, place: Place, task: Task, *, owner: str) -> None:
        """Opens the sandbox. Raises SandboxFault, and TaskError when the task's setup fails."""
        self.place, self.task = place, task
        self.steps = 0
        self.stop: StopReason | None = None
        self.verdict: Reward | None = None
        self._lock = threading.RLock()
        self._cancelled = False
        self._left: Diff | None = None
        """The work of an episode whose deadline passed, kept to be judged."""
        self._step_deadline = float("inf")
        spec = SandboxSpec(workspace=task.workspace, limits=task.limits, setup=task.setup, owner=owner)
        self.sandbox: Sandbox = place.backend.open(spec)
        self.lease = self.sandbox.id
        self._deadline = time.monotonic() + min(place.harness.wall_seconds, task.limits.wall_seconds)
        self._toolbox = Toolbox(task, self.sandbox, place.harness, self._remaining)

    @property
    def seconds_left(self) -> float:
        return 0.0 if self.stop else max(0.0, self._deadline - time.monotonic())

    @property
    def returned(self) -> bool:
        """The sandbox was given back."""
        return self._left is not None or self._cancelled or self.stop is not None

    @property
    def overdue(self) -> bool:
        return self.stop is None and self._left is None and time.monotonic() >= self._deadline

    def _remaining(self) -> float:
        return min(self._deadline, self._step_deadline) - time.monotonic()

    def step(self, tool: str, arguments: dict[str, Any], timeout: float | None = None) -> Outcome:
        """Run one tool. Raises Cancelled when the session was ended meanwhile, else nothing of the agent's doing."""
        with self._lock:
            if self.stop is not None:
                return Outcome(text="the episode is over: reset", is_error=True, stop=self.stop, verdict=self.verdict)
            if self.seconds_left <= 0:
                return self._finish(StopReason.DEADLINE, "the episode's time is up", is_error=True)
            self.steps += 1
            self._step_deadline = float("inf") if timeout is None else time.monotonic() + timeout
            try:
                return self._act(tool, arguments)
            except SandboxFault as fault:
                return self._broken(fault)

    def _act(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        seen = self._toolbox.call(tool, arguments)
        text = seen.text
        if seen.edited and self.place.harness.sensors:
            text = with_findings(seen, sense(self._toolbox, seen.edited))
        text = text.encode("utf-8", "replace").decode()  # what no JSON takes: lone surrogates
        if seen.submitted:
            return self._finish(StopReason.SUBMITTED, text)
        if self.seconds_left <= 0:
            return self._finish(StopReason.DEADLINE, text, is_error=seen.is_error)
        if self.steps >= self.place.max_steps:
            return self._finish(StopReason.TURN_LIMIT, text, is_error=seen.is_error)
        return Outcome(text=text, is_error=seen.is_error)

    def _broken(self, fault: SandboxFault) -> Outcome:
        if self._cancelled:
            raise Cancelled("the session was ended") from fault
        self.stop = StopReason.SANDBOX_FAULT
        self.verdict = Reward(value=None, verdict=Verdict.FAULT, evidence=(fault.message,))
        self.sandbox.close()
        return Outcome(text=f"the sandbox failed: {fault.message}", is_error=True, stop=self.stop, verdict=self.verdict)

    def _finish(self, stop: StopReason, text: str, *, is_error: bool = False) -> Outcome:
        """Judge what is there. The sandbox is given back before that."""
        left = self._give_back()
        if self._cancelled:
            raise Cancelled("the session was ended")
        with self.place.judging:
            self.verdict = self._judge(left)
        self.stop = StopReason.VERIFIER_FAULT if self.verdict.verdict is Verdict.FAULT else stop
        return Outcome(text=text, is_error=is_error, stop=self.stop, verdict=self.verdict)

    def _give_back(self) -> Diff:
        """Raises SandboxFault when the work can't be read."""
        if self._left is None:
            self._left = self.sandbox.diff()
            self.sandbox.close()
        return self._left

    def _judge(self, left: Diff) -> Reward:
        try:
            return self.place.verifier.verify(self.task, left)
        except Fault as fault:
            return Reward(value=None, verdict=Verdict.FAULT, evidence=(fault.message,))

    def expire(self) -> None:
        """Give the sandbox of an overdue episode back; its work is judged at the next step. Skips a running step."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self.overdue:
                with contextlib.suppress(SandboxFault):  # the next step finds it broken
                    self._give_back()
        finally:
            self._lock.release()

    def cancel(self) -> None:
        """End whatever runs in the sandbox, at once; a verification that has begun goes on to its own limit."""
        self._cancelled = True
        self.sandbox.close()

    close = cancel
