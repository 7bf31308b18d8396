"""One rollout: a sandbox, the agent in it, the verdict on what it left; and groups of them."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from inloop import __version__
from inloop.errors import Fault, SandboxFault, TaskError, VerifierFault
from inloop.harness.config import HarnessConfig
from inloop.harness.external import External, ExternalEpisode
from inloop.harness.loop import Cancel, Episode
from inloop.harness.policy import Policy
from inloop.rollout.patch import unified
from inloop.sandbox.base import Backend, Diff, Sandbox, SandboxSpec
from inloop.tasks.task import Task
from inloop.trace.trajectory import Trajectory
from inloop.types import Reward, StopReason, Verdict


class Judge(Protocol):
    """What a rollout needs of the verifier."""

    def verify(self, task: Task, work: Diff) -> Reward: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One rollout to be done; plain data, so that another process can do it."""

    id: str
    task: Task
    group_id: str
    index: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Rollouts:
    """All that rollouts share; its methods may be called from many threads at once."""

    policy: Policy
    config: HarnessConfig
    backend: Backend
    judge: Judge
    retries: int = 3
    """Of an infrastructure fault; a failure of the agent is never tried again."""
    backoff: float = 1.0
    """Seconds before the first retry, doubled each time."""
    owner: str = "rollout"
    """Who holds the sandboxes, for the person who lists them."""
    judging: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(os.cpu_count() or 1))
    """Verifications at once: they need the processor, and a crowd of them would meet its own time limits."""
    external: External | None = None
    """An agent with a loop of its own; None is ours."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Written into every trajectory: the run, the engine."""

    def run(self, work: Work, cancel: Cancel | None = None) -> Trajectory:
        """A finished trajectory, whatever happened: what kept it from an end is its stop reason.

        A fault is tried again in a new sandbox, a verifier's fault on the same work. Raises only what the code at
        hand is to blame for."""
        cancel = cancel or Cancel()
        started, events = time.monotonic(), list[dict[str, Any]]()
        for attempt in range(self.retries + 1):
            try:
                done = _Attempt(self, work, cancel).run()
            except TaskError as error:  # its setup fails: nothing can be measured on it
                return _failed_task(self, work, error)
            done.events[:0] = events
            if not (done.stop and done.stop.is_fault and done.stop is not StopReason.VERIFIER_FAULT):
                break
            if attempt < self.retries:
                events = [*done.events, {"kind": "retry", "attempt": attempt + 1, "after": done.stop.value}]
                if cancel.wait(self.backoff * 2**attempt):
                    done.stop = StopReason.CANCELLED
                    break
        done.counts["retries"] = sum(e["kind"] == "retry" for e in done.events)
        done.timings["total"] = round(time.monotonic() - started, 4)
        return done

    def run_group(
        self,
        task: Task,
        k: int,
        *,
        seed: int,
        executor: Executor | None = None,
        cancel: Cancel | None = None,
        on_done: Callable[[Trajectory], None] | None = None,
    ) -> list[Trajectory]:
        """`k` rollouts of one task with one base seed, in the order of their index; faults are among them."""
        works = group(task, k, seed=seed, scope=self.scope())

        def one(work: Work) -> Trajectory:
            trajectory = self.run(work, cancel)
            if on_done:
                on_done(trajectory)
            return trajectory

        if executor is None:
            return [one(w) for w in works]
        return [f.result() for f in [executor.submit(one, w) for w in works]]

    def scope(self) -> str:
        """What else a rollout id stands for: the model, its weights, the harness, an agent with a loop of its own."""
        info = self.policy.info()
        agent = f"/{self.external.agent.name}-{self.external.agent.version}" if self.external else ""
        return f"{info.model}@{info.weight_version}/{self.config.hash()}/{self.config.temperature}{agent}"


def group(task: Task, k: int, *, seed: int, scope: str = "") -> list[Work]:
    """The works of one group. Ids and seeds follow from what is given, so that a resumed run makes the same ones."""
    digest = hashlib.sha256(f"{task.id}\0{seed}\0{scope}".encode()).hexdigest()
    base = int(digest[8:15], 16)
    return [
        Work(id=f"{task.id}-{digest[:8]}-{i}", task=task, group_id=f"{task.id}-{digest[:8]}", index=i, seed=base + i)
        for i in range(k)
    ]


class _Attempt:
    """One try: what it did and how long that took."""

    def __init__(self, rollouts: Rollouts, work: Work, cancel: Cancel) -> None:
        self.of, self.work, self.cancel = rollouts, work, cancel
        self.trajectory = self._blank()
        self.timings = self.trajectory.timings

    def run(self) -> Trajectory:
        try:
            work = self._in_sandbox()
        except SandboxFault as fault:
            self._stopped(StopReason.SANDBOX_FAULT, fault)
        else:
            if self.trajectory.stop and self.trajectory.stop.trains:
                self._judge(work)
        for name, seconds in self.timings.items():
            self.timings[name] = round(seconds, 4)
        return self.trajectory

    def _in_sandbox(self) -> Diff:
        """The episode; the sandbox is given back before anything is judged. Raises SandboxFault."""
        spec = SandboxSpec(
            workspace=self.work.task.workspace,
            limits=self.work.task.limits,
            setup=self.work.task.setup,
            owner=self.of.owner,
        )
        if self.of.external:
            spec = self.of.external.furnish(spec)
        sandbox = self._timed("sandbox", lambda: self.of.backend.open(spec))
        detach = self.cancel.attach(sandbox.close)
        try:
            self._episode(sandbox)
            stop = self.trajectory.stop
            return self._timed("sandbox", sandbox.diff) if stop and stop.trains else Diff()
        finally:
            detach()
            self._timed("sandbox", sandbox.close)

    def _episode(self, sandbox: Sandbox) -> None:
        t = self.trajectory
        t.meta["isolation"] = asdict(sandbox.isolation)
        episode = self._begin(sandbox)
        try:
            t.stop = episode.run()
        finally:
            t.nodes, t.events = episode.nodes, episode.events
            t.counts = dict(episode.counts)
            self.timings.update(episode.timings)

    def _begin(self, sandbox: Sandbox) -> Episode | ExternalEpisode:
        of, work = self.of, self.work
        if of.external:
            return of.external.episode(
                task=work.task, sandbox=sandbox, config=of.config, key=work.id, cancel=self.cancel
            )
        return Episode(
            task=work.task,
            sandbox=sandbox,
            policy=of.policy,
            config=of.config,
            seed=work.seed,
            key=work.id,
            cancel=self.cancel,
        )

    def _judge(self, diff: Diff) -> None:
        """The hidden tests' verdict; a fault of theirs is tried again on the same work."""
        t = self.trajectory
        t.diff = unified(self.work.task.workspace, diff)
        t.counts["files_changed"] = len(diff.changed) + len(diff.deleted)
        t.events += [{"kind": "rejected_change", "path": path, "why": why} for path, why in diff.rejected]
        for attempt in range(self.of.retries + 1):
            t.reward = self._verdict(diff)
            if t.reward.verdict is not Verdict.FAULT:
                return
            t.events.append({"kind": "verifier_fault", "message": "; ".join(t.reward.evidence)[:500]})
            if attempt < self.of.retries and self.cancel.wait(self.of.backoff * 2**attempt):
                break
        t.stop = StopReason.CANCELLED if self.cancel.is_set() else StopReason.VERIFIER_FAULT

    def _verdict(self, diff: Diff) -> Reward:
        self._timed("waiting", self.of.judging.acquire)
        try:
            reward: Reward = self._timed("verify", lambda: self.of.judge.verify(self.work.task, diff))
        except (VerifierFault, SandboxFault) as fault:
            return Reward(value=None, verdict=Verdict.FAULT, evidence=(fault.message,))
        finally:
            self.of.judging.release()
        return reward

    def _stopped(self, stop: StopReason, fault: Fault) -> None:
        self.trajectory.stop = StopReason.CANCELLED if self.cancel.is_set() else stop
        self.trajectory.events.append({"kind": stop.value, "message": fault.message[:500]})

    def _timed(self, what: str, do: Callable[[], Any]) -> Any:
        started = time.monotonic()
        try:
            return do()
        finally:
            self.timings[what] = self.timings.get(what, 0.0) + time.monotonic() - started

    def _blank(self) -> Trajectory:
        of, info = self.of, self.of.policy.info()
        agent = of.external.agent if of.external else None
        return Trajectory(
            id=self.work.id,
            task_id=self.work.task.id,
            group_id=self.work.group_id,
            seed=self.work.seed,
            agent={"name": agent.name if agent else "inloop", "version": agent.version if agent else __version__},
            model=info.model,
            harness=of.config.record(),
            tools=of.policy.schemas(),
            meta={**of.meta, "engine": {"dtype": info.dtype, "logprobs_mode": info.logprobs_mode}},
        )


def _failed_task(rollouts: Rollouts, work: Work, error: TaskError) -> Trajectory:
    blank = _Attempt(rollouts, work, Cancel()).trajectory
    event = {"kind": "task_error", "message": error.message[:500]}
    return replace(blank, stop=StopReason.SANDBOX_FAULT, events=[event])


def passed(trajectories: Sequence[Trajectory]) -> tuple[int, int]:
    """(passed, scored): what could not be scored is in neither."""
    values = [t.reward.value for t in trajectories if t.reward and t.reward.value is not None]
    return sum(v >= 1 for v in values), len(values)
