"""Tasks x harness x engine -> a ledger of trajectories: resumable, bounded, each rollout exactly once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inloop import files, progress
from inloop.errors import DataError, EngineFault, Fault
from inloop.harness.loop import Cancel
from inloop.rollout.run import Work, group
from inloop.rollout.summary import Summary
from inloop.sandbox.lease import leases
from inloop.tasks.task import Task
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Trajectory
from inloop.types import StopReason

PLAN = "collect.json"
FAULTS = "faults.jsonl"
SUMMARY = "summary.json"
MANY_FAULTS = 8
"""Engine faults in a row (each already retried) after which the engine counts as gone."""

Run = Callable[[Work, Cancel], Trajectory]
"""One rollout, in this process or in another; raises InloopError for a task that can't be run."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be collected; a folder holds one plan, and a second run with the same one goes on with it."""

    k: int = 1
    """Rollouts a task: one group."""
    seed: int = 0
    concurrency: int = 0
    """Rollouts at once; 0: eight a core, since most of them wait for the engine."""
    max_seconds: float = 0.0
    """Of the run; what is still running then is cancelled. 0: no deadline."""
    max_tokens: int = 0
    """Sampled tokens of the run; no rollout is begun beyond. 0: no budget."""

    def width(self) -> int:
        return self.concurrency or 8 * (os.cpu_count() or 1)


def collect(tasks: Sequence[Task], run: Run, plan: Plan, out: Path, *, scope: str, identity: dict[str, Any]) -> Summary:
    """Do what the ledger in `out` does not hold yet. `identity` is what a resumed run must have in common.

    Raises DataError when another run holds the folder or it holds another plan, EngineFault when the engine is gone;
    what was finished is in the ledger in any case, also after Ctrl-C or a kill."""
    with files.locked(out, "inloop collect"):
        _same_plan(out / PLAN, {**identity, "seed": plan.seed, "scope": scope})
        return _Collection(tasks, run, plan, out, scope).run()


def _same_plan(path: Path, identity: dict[str, Any]) -> None:
    if path.is_file():
        before = _read_plan(path)
        changed = sorted(k for k in {*before, *identity} if before.get(k) != identity.get(k))
        if changed:
            was = "; ".join(f"{k}: {before.get(k)} there, {identity.get(k)} now" for k in changed)
            raise DataError(f"{path.parent} holds another collection ({was})", fix="choose another --out")
    else:
        files.write_json(path, identity)


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: {error}", fix="delete it if this folder is yours to go on with") from None


class _Collection:
    def __init__(self, tasks: Sequence[Task], run: Run, plan: Plan, out: Path, scope: str) -> None:
        self.plan, self.out, self._run = plan, out, run
        self.store = TrajectoryStore(out)
        self.works = [w for t in tasks for w in group(t, plan.k, seed=plan.seed, scope=scope)]
        self.summary = Summary(wanted=len(self.works))
        wanted = {w.id for w in self.works}
        for trajectory in self.store if len(self.store) else ():
            if trajectory.id in wanted:
                self.summary.add_before(trajectory)
        self.cancel = Cancel()
        self.started = time.monotonic()
        self._faults_in_row = 0

    def run(self) -> Summary:
        try:
            with progress.bar("collect", len(self.works)) as bar:
                bar.step(self.summary.before)
                self._drive(bar)
        except KeyboardInterrupt:
            self.summary.ended = "interrupted"
            held = self.summary.before + self.summary.done
            progress.console.print(
                f"stopped: {held} rollouts are kept in {self.out}; the same command goes on from there"
            )
            raise
        finally:
            self._close()
        if self.summary.ended == "engine gone":
            raise EngineFault(
                f"{self._faults_in_row} rollouts in a row met an engine that does not answer",
                fix="see why the engine ends (memory?); the same command goes on from where this one stopped",
            )
        return self.summary

    def _drive(self, bar: progress.Bar) -> None:
        """Keep `width` rollouts running until nothing is left or a limit is met."""
        running: dict[Future[Trajectory], Work] = {}
        works = self._left()
        pool = ThreadPoolExecutor(self.plan.width(), thread_name_prefix="rollout")
        try:
            while True:
                while len(running) < self.plan.width() and self._may_begin() and (work := next(works, None)):
                    running[pool.submit(self._run, work, self.cancel)] = work
                if not running:
                    return
                finished, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                self._past_deadline()
                for future in finished:
                    self._finish(future, running.pop(future))
                    bar.step(note=self._note())
        except BaseException:
            self.cancel.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            for future, work in running.items():
                if not future.cancelled() and isinstance(future.exception(), Fault | None):
                    self._finish(future, work)

    def _left(self) -> Iterator[Work]:
        return (w for w in self.works if w.id not in self.store)

    def _may_begin(self) -> bool:
        if self.plan.max_tokens and self.summary.counts["sampled_tokens"] >= self.plan.max_tokens:
            self.summary.ended = "token budget"
            return False
        if self._faults_in_row >= MANY_FAULTS:
            self.summary.ended = "engine gone"
            self.cancel.set()
        return not self.cancel.is_set()

    def _past_deadline(self) -> None:
        seconds = time.monotonic() - self.started
        if self.plan.max_seconds and seconds > self.plan.max_seconds and not self.cancel.is_set():
            self.summary.ended = "deadline"
            self.cancel.set()

    def _finish(self, future: Future[Trajectory], work: Work) -> None:
        try:
            self._take(future.result())
        except Fault as fault:  # not even its trajectory came back
            files.append_json(self.out / FAULTS, {"id": work.id, "task_id": work.task.id, "message": fault.message})
            self.summary.faults[f"{fault.family}_fault"] += 1

    def _take(self, trajectory: Trajectory) -> None:
        """Into the ledger; a fault goes beside it, since nothing was measured, and is done again by the next run."""
        stop = trajectory.stop
        self._faults_in_row = self._faults_in_row + 1 if stop is StopReason.ENGINE_FAULT else 0
        if stop is not None and stop.is_fault:
            files.append_json(self.out / FAULTS, trajectory.to_dict())
        elif stop is not StopReason.CANCELLED:
            self.store.append(trajectory)
        self.summary.add(trajectory)

    def _note(self) -> str:
        minutes = (time.monotonic() - self.started) / 60
        return f"{self.summary.note()} · {self.summary.done / max(minutes, 1e-6):.1f}/min"

    def _close(self) -> None:
        self.summary.seconds = round(time.monotonic() - self.started, 3)
        self.summary.leaked_sandboxes = sum(str(self.out) in lease.owner for lease in leases())
        if self.summary.ended == "complete" and self.cancel.is_set():
            self.summary.ended = "interrupted"
        files.write_json(self.out / SUMMARY, self.summary.to_dict())
