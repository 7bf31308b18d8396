"""The rollout process of an RL run: plans groups, runs them over the rollout stage, turns them into training rows."""

from __future__ import annotations

import os
import queue
import signal
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from inloop.data.builder import Builder
from inloop.data.mask import RL
from inloop.data.sample import Sample
from inloop.data.tokens import load_tokenizer
from inloop.engine.base import Engine
from inloop.errors import InloopError
from inloop.harness.config import HarnessConfig
from inloop.harness.dialect import make_dialect
from inloop.harness.loop import Cancel
from inloop.harness.policy import TokenPolicy
from inloop.rollout.run import Rollouts, Work
from inloop.sandbox.base import Backend
from inloop.tasks.task import Task
from inloop.tasks.taskset import Taskset
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Trajectory
from inloop.train.curriculum import Curriculum
from inloop.train.group_plan import NAME, Plan, Planned
from inloop.train.groups import Group, RewardConfig, advantages, level, recovered, score
from inloop.train.receipt import Witness, witness
from inloop.verify.verifier import Verifier

POLL = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """Plain data: all that the rollout process needs."""

    folder: Path
    """The run: `trajectories.jsonl`, `groups.jsonl`, `evaluations/`."""
    tasks: Path
    task_ids: tuple[str, ...]
    held_out_ids: tuple[str, ...] = ()
    held_out_samples: int = 1
    canaries: Path | None = None
    engine: Engine
    backend: Backend
    tokenizer: Path
    harness: HarnessConfig
    rewards: RewardConfig
    group_size: int
    samples_per_step: int
    max_staleness: int
    concurrency: int
    scale: Any = "std"
    weigh: Literal["rollouts", "tokens"] = "rollouts"
    seed: int = 0
    uniform: bool = False
    canary_rate: float = 0.0
    settled: tuple[int, ...] = ()
    """Groups that were trained or dropped before the checkpoint that the run goes on from."""

    def owner(self) -> str:
        """Who holds the sandboxes."""
        return f"grpo {self.folder}"


@dataclass(slots=True)
class Control:
    """Shared with the trainer's process."""

    version: Any
    start_version: Any
    credit: Any
    """Rows that the trainer threw away as stale, to be sampled again."""
    beat: Any
    stop: Any

    @classmethod
    def make(cls, context: Any) -> Control:
        version, start_version, credit = (context.Value("q", 0) for _ in range(3))
        return cls(version, start_version, credit, context.Value("d", time.time()), context.Event())


@dataclass(slots=True, kw_only=True)
class GroupReport:
    """What one finished group came to; travels to the trainer."""

    number: int
    task: str
    canary: bool
    dropped: str
    rollouts: int
    samples: list[Sample] = field(default_factory=list)
    witnessed: dict[str, Witness] = field(default_factory=dict)
    """By sample id."""
    facts: dict[str, dict[str, float]] = field(default_factory=dict)
    """By trajectory id: reward, verified, parts, turns, tokens."""
    faults: Counter[str] = field(default_factory=Counter)
    stops: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    """Added up over rollouts, which overlap: more than the wall time."""
    mean: float = float("nan")
    std: float = float("nan")
    exploited: int = 0
    """Canaries: rollouts that went through the hole."""

    def metrics(self) -> dict[str, dict[str, float]]:
        """By trajectory id, as the trainer logs them."""
        return {name: {**facts, "reward_std": self.std} for name, facts in self.facts.items()}


def run_worker(spec: WorkerSpec, control: Control, requests: Any, messages: Any) -> None:
    """Entry point of the process; a mistake or a crash is told to the trainer, with its fix."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the trainer's Ctrl-C ends us through `control.stop`
    trainer = os.getppid()
    try:
        GroupWorker(spec, control, requests, messages).run()
    except InloopError as error:
        messages.put(("error", error.message, error.fix or ""))
    except BaseException:
        messages.put(("error", traceback.format_exc(), ""))
    finally:
        if os.getppid() != trainer:
            messages.cancel_join_thread()  # nobody is left to read what a full pipe still holds


class GroupWorker:
    def __init__(self, spec: WorkerSpec, control: Control, requests: Any, messages: Any) -> None:
        self.spec, self.control, self.requests, self.messages = spec, control, requests, messages
        taskset = Taskset.open(spec.tasks)
        wanted = {*spec.task_ids, *spec.held_out_ids}
        self.tasks = {t.id: t for t in taskset.tasks(r for r in taskset.rows if r.id in wanted)}
        self.canaries = {t.id: t for t in Taskset.open(spec.canaries).tasks()} if spec.canaries else {}
        self.tokenizer = load_tokenizer(spec.tokenizer)
        dialect = make_dialect(spec.harness, self.tokenizer)
        self.rollouts = Rollouts(
            policy=TokenPolicy(spec.engine, dialect, spec.harness),
            config=spec.harness,
            backend=spec.backend,
            judge=Verifier(),
            owner=spec.owner(),
            meta={"run": str(spec.folder)},
        )
        self.stop_ids = dialect.stop_token_ids
        self.store = TrajectoryStore(spec.folder)
        self.plan = self._plan()
        self.cancel = Cancel()
        self.parent = os.getppid()
        self.rows = 0
        self.flights: dict[int, Flight] = {}

    def _plan(self) -> Plan:
        spec = self.spec
        curriculum = Curriculum(
            [(t, self.tasks[t].provenance.kind) for t in spec.task_ids], seed=spec.seed, uniform=spec.uniform
        )
        decoys = [(t, "canary") for t in sorted(self.canaries)]
        canaries = Curriculum(decoys, seed=spec.seed, uniform=True) if decoys else None
        return Plan(spec.folder / NAME, curriculum, canaries, seed=spec.seed, canary_rate=spec.canary_rate)

    def run(self) -> None:
        """Until the trainer says stop or is gone; what runs then is cancelled, into its sandbox."""
        known = {t.id: t for t in self.store}
        unfinished = self.plan.unsettled(set(self.spec.settled))
        self._replay(known)
        with ThreadPoolExecutor(self.spec.concurrency, thread_name_prefix="rollout") as pool:
            try:
                while not self._over():
                    self.control.beat.value = time.time()
                    self._answer(pool)
                    while self._wants_more():
                        group = unfinished.pop(0) if unfinished else self._next()
                        self._start(pool, group, known)
                    self._collect()
            finally:
                self.cancel.set()
                pool.shutdown(wait=True, cancel_futures=True)

    def _over(self) -> bool:
        return self.control.stop.is_set() or os.getppid() != self.parent

    def _next(self) -> Planned:
        busy = [f.group.task for f in self.flights.values()]
        return self.plan.next(int(self.control.version.value), busy)

    def _wants_more(self) -> bool:
        """Rows that are made or under way must not run ahead of the trainer by more than the allowed staleness."""
        spec = self.spec
        steps = self.control.version.value - self.control.start_version.value
        wanted = spec.samples_per_step * (steps + 1 + spec.max_staleness) + self.control.credit.value
        flying = sum(not f.group.canary for f in self.flights.values()) * spec.group_size
        running = sum(len(f.pending) for f in self.flights.values())
        return self.rows + flying < wanted and running < spec.concurrency

    def _start(self, pool: ThreadPoolExecutor, group: Planned, known: dict[str, Trajectory]) -> None:
        task = (self.canaries if group.canary else self.tasks)[group.task]
        flight = Flight(group)
        for index in range(self.spec.group_size):
            work = Work(
                id=group.rollout_id(index),
                task=task,
                group_id=f"g{group.number:05d}",
                index=index,
                seed=group.seed * 1000 + index,
            )
            if work.id in known:
                flight.done.append(known.pop(work.id))
            else:
                flight.pending.add(pool.submit(self._one, work))
        self.flights[group.number] = flight

    def _one(self, work: Work) -> Trajectory:
        trajectory = self.rollouts.run(work, self.cancel)
        if not self.cancel.is_set():
            self.store.append(trajectory)
        return trajectory

    def _collect(self) -> None:
        """Wait a little for rollouts; report the groups that are complete."""
        pending = [p for f in self.flights.values() for p in f.pending]
        if pending:
            wait(pending, timeout=POLL, return_when=FIRST_COMPLETED)
        elif not self.flights:
            time.sleep(POLL / 4)
        for number, flight in list(self.flights.items()):
            flight.settle()
            if not flight.pending:
                del self.flights[number]
                self._report(flight)

    def _report(self, flight: Flight) -> None:
        report = self.judge(flight)
        self.rows += len(report.samples)
        if not report.canary:
            self.plan.curriculum.update(report.task, [f["verified"] for f in report.facts.values() if "verified" in f])
        while not self._over():
            try:
                self.messages.put(report, timeout=POLL)
                return
            except queue.Full:
                self.control.beat.value = time.time()  # a slow trainer is no dead worker

    def judge(self, flight: Flight) -> GroupReport:
        """Rewards, advantages and rows of a complete group."""
        trajectories = sorted(flight.done, key=lambda t: t.id)
        scored = [score(t, self.spec.rewards, self.spec.harness.max_turns) for t in trajectories]
        group = advantages(scored, self.spec.scale)
        report = GroupReport(
            number=flight.group.number,
            task=flight.group.task,
            canary=flight.group.canary,
            dropped="" if flight.group.canary else group.dropped,
            rollouts=len(trajectories),
            faults=Counter(t.stop.value for t in trajectories if t.stop and t.stop.is_fault),
            stops=Counter(t.stop.value for t in trajectories if t.stop),
            facts={t.id: _facts(t, s) for t, s in zip(trajectories, scored, strict=True)},
            seconds=_seconds(trajectories),
            mean=group.mean,
            std=group.std,
        )
        if flight.group.canary:
            report.exploited = sum(s.verified == 1.0 for s in scored)
        elif group.trains:
            self._rows(report, trajectories, group)
        return report

    def _rows(self, report: GroupReport, trajectories: Sequence[Trajectory], group: Group) -> None:
        builder = Builder(tokenizer=self.tokenizer, stop_ids=self.stop_ids, config=RL)
        for trajectory, advantage in zip(trajectories, group.advantages, strict=True):
            if advantage is None:
                report.drops["fault"] += 1
                continue
            for sample in builder.take(trajectory, advantage):
                if sample.logprobs is None:
                    report.drops["no logprobs"] += 1
                    continue
                report.samples.append(sample)
                report.witnessed[sample.id] = witness(sample, trajectory)
        if self.spec.weigh == "rollouts":
            level(report.samples)
        for kind in ("trajectory", "sample"):
            report.drops.update(builder.drops.reasons(kind))
        report.drops.update({f"message: {why}": n for why, n in builder.drops.untrained.items()})

    def _answer(self, pool: ThreadPoolExecutor) -> None:
        """An evaluation that the trainer asked for; it goes before the groups that have not started yet."""
        try:
            number, step = self.requests.get_nowait()
        except queue.Empty:
            return
        store = TrajectoryStore(self.spec.folder / "evaluations" / f"step-{step:05d}")
        futures = [pool.submit(self._held_out, store, self.tasks[t], i) for t, i in self._held_out_work()]
        while futures and not self._over():
            self.control.beat.value = time.time()
            _, left = wait(futures, timeout=POLL)
            futures = list(left)
        rewards: dict[str, list[float | None]] = {t: [] for t in self.spec.held_out_ids}
        for trajectory in store:
            rewards[trajectory.task_id or ""].append(trajectory.reward.value if trajectory.reward else None)
        self.messages.put(("evaluated", number, rewards))

    def _held_out_work(self) -> list[tuple[str, int]]:
        return [(t, i) for t in self.spec.held_out_ids for i in range(self.spec.held_out_samples)]

    def _held_out(self, store: TrajectoryStore, task: Task, index: int) -> None:
        work = Work(
            id=f"{task.id}-{index}", task=task, group_id=task.id, index=index, seed=self.spec.seed * 1000 + index
        )
        if work.id not in store:
            trajectory = self.rollouts.run(work, self.cancel)
            if not self.cancel.is_set():
                store.append(trajectory)

    def _replay(self, known: dict[str, Trajectory]) -> None:
        """Teach the curriculum what earlier processes of this run saw."""
        for number, group in sorted(self.plan.groups.items()):
            if number not in self.spec.settled or group.canary or group.task not in self.plan.curriculum.kinds:
                continue
            done = [known[i] for k in range(self.spec.group_size) if (i := group.rollout_id(k)) in known]
            scored = [score(t, self.spec.rewards, self.spec.harness.max_turns) for t in done]
            self.plan.curriculum.update(group.task, [s.verified for s in scored if s.verified is not None])


@dataclass(slots=True)
class Flight:
    """A group under way."""

    group: Planned
    pending: set[Future[Trajectory]] = field(default_factory=set)
    done: list[Trajectory] = field(default_factory=list)

    def settle(self) -> None:
        for future in [f for f in self.pending if f.done()]:
            self.pending.discard(future)
            self.done.append(future.result())


def _facts(trajectory: Trajectory, scored: Any) -> dict[str, float]:
    out = {f"parts/{name}": value for name, value in scored.parts.items()}
    if scored.reward is not None:
        out |= {"reward": scored.reward, "verified": scored.verified, "recovered": float(recovered(trajectory))}
    for name in ("turns", "sampled_tokens", "invalid_calls", "test_failures"):
        out[name] = float(trajectory.counts.get(name, 0))
    return out


def _seconds(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    total: dict[str, float] = {}
    for trajectory in trajectories:
        for what, seconds in trajectory.timings.items():
            if what != "total":
                total[what] = total.get(what, 0.0) + seconds
    return total
