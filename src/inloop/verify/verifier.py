"""`Verifier.verify(task, workspace or diff) -> Reward`: what an agent left, judged where it never was."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from inloop.errors import Fault, InloopError, TaskError
from inloop.sandbox.base import Diff, Isolation
from inloop.sandbox.collect import collect
from inloop.sandbox.launch import isolation
from inloop.tasks.task import Task
from inloop.types import Reward, Verdict
from inloop.verify import allow, command, forked, score, split, tree, twins
from inloop.verify.halves import Half, half, two_halves
from inloop.verify.oracle import oracle_diff
from inloop.verify.record import Run

MODES = {"split": split.run, "forked": forked.run}
REMEMBERED = 4096
"""Verdicts kept in memory."""
PREPARED = 512
"""Tasks whose hidden tests are kept in memory."""
CACHED = "the same diff was judged before; that verdict"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is read of a task once."""

    task: Task
    tree: tree.TestTree
    twins: twins.Twins
    content: str
    note: str = ""


class Verifier:
    """Thread safe. Reads a task's files once for each `Task` object; remembers verdicts by content of task and diff."""

    def __init__(self, *, cache: bool = True) -> None:
        self.cache = cache
        self._lock = threading.Lock()
        self._tasks: OrderedDict[int, Prepared] = OrderedDict()
        self._verdicts: OrderedDict[tuple[str, str], Reward] = OrderedDict()

    @property
    def isolation(self) -> Isolation:
        return isolation()

    def verify(self, task: Task, work: Path | Diff) -> Reward:
        """Judge a workspace folder, or the changes that were taken from one.

        Raises InloopError when the task or the folder can't be used; a failing machine is a `fault` with value None."""
        started = time.monotonic()
        diff = allow.narrow(work if isinstance(work, Diff) else self.changes(task, work), task)
        try:
            found = self._judge(task, diff)
        except (Fault, OSError) as fault:
            found = Reward(value=None, verdict=Verdict.FAULT, evidence=(str(fault),), mode=task.verify.mode)
        notes = tuple(f"left out: {path} ({why})" for path, why in diff.rejected[:20])
        if len(diff.rejected) > 20:
            notes += (f"left out: {len(diff.rejected) - 20} more paths",)
        return replace(found, evidence=found.evidence + notes, seconds=round(time.monotonic() - started, 4))

    def changes(self, task: Task, workspace: Path) -> Diff:
        """What differs in `workspace` from the task's own. Raises InloopError when it is no folder."""
        try:
            return collect(Path(workspace), task.workspace)
        except OSError as error:
            raise InloopError(
                f"{workspace}: {error.strerror}", fix="name the folder that the agent worked in"
            ) from None

    def _judge(self, task: Task, diff: Diff) -> Reward:
        if task.verify.mode == "command":
            return command.run(task, diff)
        ready = self.prepare(task)
        if not task.verify.expected:
            raise TaskError(f"{task.id}: no expected test ids", fix="audit the task: it finds them on the solution")
        key = (ready.content, _digest(diff))
        with self._lock:
            if self.cache and key in self._verdicts:
                known = self._verdicts[key]
                return replace(known, evidence=(*known.evidence, CACHED))
        found = self._twice_if_faulty(ready, diff)
        if found.verdict in (Verdict.PASSED, Verdict.FAILED):
            with self._lock:
                self._verdicts[key] = found
                while len(self._verdicts) > REMEMBERED:
                    self._verdicts.popitem(last=False)
        return found

    def _twice_if_faulty(self, ready: Prepared, diff: Diff) -> Reward:
        """A fault is tried once more, on fresh sandboxes."""
        try:
            return self._run(ready, diff)
        except (Fault, OSError):
            return self._run(ready, diff)

    def _run(self, ready: Prepared, diff: Diff) -> Reward:
        task = ready.task
        seed, usable = ready.twins.pick()
        halves = two_halves(ready.tree.sources, seed, usable)
        ran = MODES[task.verify.mode](task, ready.tree, diff, halves)
        found = score.reward(task.verify.expected, halves, ran.runs, mode=task.verify.mode, timed_out=ran.timed_out)
        extra = [f"not laid: {d}" for d in ran.dropped]
        extra += [f"met the limit of {ran.met}"] if ran.met else []
        extra += [ready.note] if ready.note else []
        return replace(found, evidence=(*found.evidence, *extra))

    def prepare(self, task: Task) -> Prepared:
        """Read the hidden tests and twins of a task; twins that were never checked are checked now."""
        with self._lock:
            known = self._tasks.get(id(task))
            if known is not None and known.task is task:
                self._tasks.move_to_end(id(task))
                return known
        ready = self._prepare(task)
        with self._lock:
            self._tasks[id(task)] = ready
            while len(self._tasks) > PREPARED:
                self._tasks.popitem(last=False)
        return ready

    def _prepare(self, task: Task) -> Prepared:
        tests = tree.read(task)
        content = task.content_hash()
        if not task.verify.twins:
            return Prepared(task, tests, twins.NONE, content)
        made = twins.load(task, tests.sources)
        if made is None:
            try:
                made = self._check_twins(task, tests)
            except TaskError as error:
                return Prepared(task, tests, twins.NONE, content, f"no canary twins: {error.message}")
        note = "" if made.count else "no canary twins: nothing that the tests assert can be asked differently"
        return Prepared(task, tests, made, content, note)

    def build_twins(self, task: Task) -> twins.Twins:
        """Make twins, check that they fail on the solution, and keep them in tests/twins.json.

        Raises TaskError without a solution, Fault when the machine fails."""
        tests = tree.read(task)
        made = self._check_twins(task, tests)
        twins.save(task, made, tests.sources)
        return made

    def _check_twins(self, task: Task, tests: tree.TestTree) -> twins.Twins:
        solution = oracle_diff(task)

        def run(halves: list[Half]) -> list[Run]:
            return MODES[task.verify.mode](task, tests, solution, halves).runs

        return twins.check(tests.sources, task.verify.expected, run)

    def collected_ids(self, task: Task, diff: Diff | None = None) -> tuple[tuple[str, ...], Run]:
        """(ids of the hidden tests in order, how each went) on the solution, or on `diff`."""
        tests = tree.read(task)
        only = half(tests.sources, 0, frozenset())
        ran = MODES[task.verify.mode](task, tests, oracle_diff(task) if diff is None else diff, [only])
        return tuple(ran.runs[0].collected), ran.runs[0]


def expected_ids(task: Task, verifier: Verifier | None = None) -> tuple[str, ...]:
    """The ids of the hidden tests on the solution. Raises TaskError that names those that do not pass."""
    ids, told = (verifier or Verifier()).collected_ids(task)
    bad = [f"{i}: {told.tests[i].status() if i in told.tests else 'missing'}" for i in ids]
    bad = [line for line in bad if not line.endswith(": passed")]
    if bad or not ids or not told.ended:
        why = "; ".join([*bad[:5], *(f"{f}: {w}" for f, w in told.broken[:3]), told.crash][:6]) or "no test was found"
        raise TaskError(f"{task.id}: the solution does not pass its hidden tests: {why}", fix="mend tests or solution")
    return ids


def _digest(diff: Diff) -> str:
    digest = hashlib.sha256()
    for path, data in sorted(diff.changed.items()):
        digest.update(f"{path}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    digest.update("\0".join(("", *sorted(diff.deleted))).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
