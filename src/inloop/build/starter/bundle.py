"""Audits many starter tasks in few sandboxes: the same checks as for any task, with the tests of many run together.

What is judged here is ours: two dozen small modules that share nothing, each with tests of its own in a file of its
own. So they can stand side by side in one workspace. Agents' work is never judged this way."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from inloop.build.audit import SKIP_MODULE, Auditor, skip_diffs
from inloop.build.leaks import installed_copies, instruction_faults, leaks
from inloop.errors import VerifierFault
from inloop.sandbox.base import Diff
from inloop.tasks.folder import save_metadata, write_files
from inloop.tasks.task import Card, Limits, Task, VerifySpec
from inloop.verify import allow, score, split, tree, twins
from inloop.verify.halves import Half, Key, half, two_halves
from inloop.verify.oracle import oracle_diff
from inloop.verify.record import Run

REPEATS = 3
VARIANTS = 2
"""Sets of canary twins a task."""
SIZE = 24
"""Tasks in one sandbox."""
LIMITS = Limits(wall_seconds=300.0, memory_mb=768)


def bundles(tasks: Sequence[Task], size: int = SIZE) -> list[list[Task]]:
    """Parts of at most `size` tasks, no two of one part with a module of the same name."""
    out: list[list[Task]] = []
    names: list[set[str]] = []
    for task in tasks:
        mine = set(task.verify.modules)
        at = next((i for i, n in enumerate(names) if len(out[i]) < size and not n & mine), len(out))
        if at == len(out):
            out.append([])
            names.append(set())
        out[at].append(task)
        names[at] |= mine
    return out


def audit_all(tasks: Sequence[Task], auditor: Auditor, workers: int, step: Callable[[int], None]) -> list[Task]:
    """Audit in bundles, several at once, in the order of `tasks`; `step` is told how many more are done."""
    parts = bundles(tasks)
    done: dict[str, Task] = {}
    pool = ThreadPoolExecutor(workers, thread_name_prefix="audit")
    try:
        for future in as_completed([pool.submit(audit_bundle, part, auditor) for part in parts]):
            audited = future.result()
            done.update({t.id: t for t in audited})
            step(len(audited))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return [done[t.id] for t in tasks]


def audit_bundle(tasks: Sequence[Task], auditor: Auditor) -> list[Task]:
    """The tasks with their cards written; one that does not pass here is audited alone, which gives the reasons.

    Raises Fault when the machine fails."""
    with _bundle(tasks) as bundle:
        faults = bundle.faults()
    out = []
    for task in tasks:
        if faults[task.id]:
            out.append(auditor.audit(task))
            continue
        audited = replace(task, card=bundle.card(task, auditor))
        save_metadata(audited)
        out.append(audited)
    return out


@contextlib.contextmanager
def _bundle(tasks: Sequence[Task]) -> Iterator[_Bundle]:
    with tempfile.TemporaryDirectory(prefix="inloop-bundle-") as folder:
        whole = _together(tasks, Path(folder))
        yield _Bundle(list(tasks), whole)


def _together(tasks: Sequence[Task], root: Path) -> Task:
    """One task of all modules and all hidden tests."""
    Path(root).chmod(0o755)
    modules = {f"{m}.py": (t.workspace / f"{m}.py").read_bytes() for t in tasks for m in t.verify.modules}
    tests = {n: (t.tests / n).read_bytes() for t in tasks for n in t.verify.tests}
    write_files(root / "environment" / "workspace", modules)
    write_files(root / "tests", tests)
    return Task(
        id="starter-bundle",
        root=root,
        instruction="",
        limits=LIMITS,
        verify=VerifySpec(
            mode="split",
            modules=tuple(m for t in tasks for m in t.verify.modules),
            tests=tuple(tests),
            expected=tuple(e for t in tasks for e in t.verify.expected),
            wall_seconds=LIMITS.wall_seconds,
        ),
    )


@dataclass
class _Bundle:
    tasks: list[Task]
    whole: Task
    seconds: float = 0.0
    memory_mb: float = 0.0

    def __post_init__(self) -> None:
        self.tests = tree.read(self.whole)
        self.oracles = {t.id: oracle_diff(t) for t in self.tasks}
        self.solution = Diff(changed={p: d for o in self.oracles.values() for p, d in o.changed.items()})

    def faults(self) -> dict[str, str]:
        """Task id -> '' or what is not as it should be. Twins are written to the tasks' folders."""
        found = {t.id: self._texts(t) for t in self.tasks}
        made = twins.check(
            self.tests.sources, self.whole.verify.expected, lambda h: self._run(self.solution, h).runs, VARIANTS
        )
        for task in self.tasks:
            mine = _own_twins(task, made)
            twins.save(task, mine, {n: self.tests.sources[n] for n in task.verify.tests})
            found[task.id] = found[task.id] or ("" if mine.count else "no twins")
        for task_id, why in [*self._repeats(made), *self._must_fail(Diff()), *self._must_fail(self._skipping())]:
            found[task_id] = found[task_id] or why
        return found

    def _texts(self, task: Task) -> str:
        """What can be seen without running anything."""
        oracle = self.oracles[task.id]
        steering = skip_diffs(task, oracle)[0]
        left = allow.narrow(steering, task)
        out = [*instruction_faults(task), *leaks(task, oracle), *installed_copies(task, oracle)]
        out += ["a file that steers the tests is carried over"] if not left.empty else []
        return "; ".join(out)

    def _repeats(self, made: twins.Twins) -> Iterator[tuple[str, str]]:
        """The solution passes, each time: first with twins in the halves, then without."""
        plain = half(self.tests.sources, 0, frozenset())
        pairs = [two_halves(self.tests.sources, *made.pick()), *([plain] for _ in range(REPEATS - 1))]
        started = time.monotonic()
        ran = self._run(self.solution, [h for pair in pairs for h in pair])
        self.seconds, self.memory_mb = time.monotonic() - started, ran.peak_memory_mb
        for task in self.tasks:
            at = 0
            for pair in pairs:
                halves, runs = pair, ran.runs[at : at + len(pair)]
                at += len(pair)
                if _value(task, halves, runs) != 1.0:
                    yield task.id, "the oracle fails"

    def _must_fail(self, diff: Diff) -> Iterator[tuple[str, str]]:
        plain = half(self.tests.sources, 0, frozenset())
        runs = self._run(diff, [plain]).runs
        for task in self.tasks:
            if _value(task, [plain], runs) == 1.0:
                yield task.id, "passes without the solution"

    def _skipping(self) -> Diff:
        return Diff(changed={path: SKIP_MODULE + data for path, data in self.solution.changed.items()})

    def _run(self, diff: Diff, halves: list[Half]) -> split.Ran:
        ran = split.run(self.whole, self.tests, diff, halves)
        if ran.timed_out or ran.dropped:
            raise VerifierFault(f"a bundle of {len(self.tasks)} tasks did not end: {ran.dropped or 'time is up'}")
        return ran

    def card(self, task: Task, auditor: Auditor) -> Card:
        about = auditor.verifier.isolation
        names = ("instruction", "no_leak", "oracle", "noop_fails", "skip_fails", "repeats_agree")
        return Card(
            content=task.content_hash(),
            ok=True,
            checks=dict.fromkeys(names, True),
            seconds=round(self.seconds / REPEATS / len(self.tasks), 3),
            memory_mb=round(self.memory_mb, 1),
            isolation=f"{about.backend}, {about.level}, {about.limits}; {len(self.tasks)} tasks in one sandbox",
        )


def _own_twins(task: Task, made: twins.Twins) -> twins.Twins:
    def mine(key: Key) -> bool:
        return key[0] in task.verify.tests

    usable = {seed: frozenset(filter(mine, keys)) for seed, keys in made.usable.items()}
    dropped = {n: w for n, w in made.dropped.items() if n.partition("::")[0] in task.verify.tests}
    return twins.Twins(usable, dropped)


def _value(task: Task, halves: Sequence[Half], runs: Sequence[Run]) -> float | None:
    """The reward of one task of the bundle: its own tests of each half, judged as ever."""
    own = [_own_run(task, run) for run in runs]
    cut = [Half(h.files, frozenset(k for k in h.twins if k[0] in task.verify.tests)) for h in halves]
    return score.reward(task.verify.expected, cut, own, mode="split", timed_out=False).value


def _own_run(task: Task, run: Run) -> Run:
    def mine(test_id: str) -> bool:
        return test_id.partition("::")[0] in task.verify.tests

    return replace(
        run,
        collected=[i for i in run.collected if mine(i)],
        tests={i: t for i, t in run.tests.items() if mine(i)},
        broken=[b for b in run.broken if b[0] in task.verify.tests],
    )
