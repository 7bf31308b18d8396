"""The audit card: a task may be trained on only when its checker can tell right from wrong."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace

from inloop.build.draft import Drop
from inloop.build.leaks import installed_copies, instruction_faults, leaks
from inloop.build.source import is_test_file
from inloop.errors import Fault, InloopError
from inloop.sandbox.base import Diff
from inloop.tasks.cards import why_unaudited
from inloop.tasks.folder import load_task, save_metadata
from inloop.tasks.task import Card, Task
from inloop.types import Reward, Verdict
from inloop.verify import allow, forked, split, tree
from inloop.verify.halves import half
from inloop.verify.oracle import oracle_diff
from inloop.verify.verifier import Verifier

MODES = {"split": split.run, "forked": forked.run}
SKIP_ALL = b"""\
import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.skip(reason="skipped"))
"""
SKIP_MODULE = b'import pytest\n\npytest.skip("skipped", allow_module_level=True)\n'
SKIP_OPTIONS = b"[pytest]\naddopts = --collect-only\n"


class Stopped(Exception):
    """The audit was ended from outside; it says nothing about the task."""


class NotHere(InloopError):
    """A task that this machine can't run, such as one that needs docker."""


@dataclass
class Auditor:
    """Thread safe. With `enabled` off, tasks are let in without a card."""

    enabled: bool = True
    stop: threading.Event = field(default_factory=threading.Event)
    """Set it to end running audits at their next verdict (with `Stopped`)."""

    def __post_init__(self) -> None:
        self.verifier = Verifier(cache=False)

    def admit(self, task: Task) -> Task:
        """The task with its card written. Raises Drop, and removes the folder, when it fails."""
        if not self.enabled:
            return task
        try:
            audited = self.audit(task)
        except BaseException:
            shutil.rmtree(task.root, ignore_errors=True)
            raise
        if audited.card is None or not audited.card.ok:
            shutil.rmtree(task.root, ignore_errors=True)
            raise Drop("audit: " + (audited.card.reasons[0] if audited.card else "no card"))
        return audited

    def audit(self, task: Task) -> Task:
        """Check a task, write its card, and return it as it now is.

        Raises NotHere when it needs what this machine lacks, Fault when the machine fails."""
        if task.image:
            raise NotHere(f"{task.id} needs docker ({task.image})", fix="audit it on a machine with docker")
        if task.verify.twins and task.verify.mode != "command" and not (task.tests / "twins.json").is_file():
            self._twins(task)
        card = self.card(task)
        audited = replace(task, card=card)
        save_metadata(audited)
        return audited

    def _twins(self, task: Task) -> None:
        try:
            self.verifier.build_twins(task)
        except Fault:
            raise
        except InloopError:
            return  # what is wrong with the solution or the tests is said by the checks

    def card(self, task: Task) -> Card:
        """Every check, the dear ones only while the cheap ones hold."""
        content = task.content_hash()
        checks: dict[str, bool] = {}
        reasons: list[str] = []
        seconds = memory = 0.0

        def note(name: str, faults: Sequence[str]) -> None:
            checks[name] = not faults
            reasons.extend(faults)

        note("instruction", instruction_faults(task))
        try:
            oracle = oracle_diff(task)
        except InloopError as error:
            note("oracle", [f"no oracle: {error.message.splitlines()[0]}"])
        else:
            note("no_leak", _short([*leaks(task, oracle), *installed_copies(task, oracle)]))
            if not reasons:
                seconds, memory = self._runs(task, oracle, note)
        return Card(
            content=content,
            ok=not reasons,
            checks=checks,
            reasons=tuple(reasons),
            seconds=round(seconds, 3),
            memory_mb=round(memory, 1),
            isolation=_isolation(self.verifier),
        )

    def _runs(self, task: Task, oracle: Diff, note: Callable[[str, Sequence[str]], None]) -> tuple[float, float]:
        """(seconds of the first oracle run, peak memory in MB of the submission's sandbox)."""
        first = self._verify(task, oracle)
        note("oracle", [] if first.value == 1.0 else [f"the oracle fails: {_why(first)}"])
        if first.value != 1.0:
            return first.seconds, 0.0
        note("noop_fails", self._must_fail(task, Diff(), "doing nothing passes"))
        cheats = [d for d in skip_diffs(task, oracle) if not allow.narrow(d, task).empty]
        skips = [self._must_fail(task, d, "deleting or skipping tests passes") for d in cheats]
        note("skip_fails", [reason for found in skips for reason in found][:1])
        second = self._verify(task, oracle)
        disagree = [] if second.value == 1.0 else [f"repeats disagree: {_why(second)}"]
        third, memory = plain_run(task, oracle)
        note("repeats_agree", disagree or ([f"repeats disagree: {third}"] if third else []))
        return first.seconds, memory

    def _must_fail(self, task: Task, diff: Diff, reason: str) -> list[str]:
        return [reason] if self._verify(task, diff).value == 1.0 else []

    def _verify(self, task: Task, diff: Diff) -> Reward:
        """A verdict; a fault of the machine is raised, it says nothing about the task."""
        if self.stop.is_set():
            raise Stopped
        reward = self.verifier.verify(task, diff)
        if reward.verdict is Verdict.FAULT:
            raise Fault("; ".join(reward.evidence) or "the verifier failed")
        return reward


def skip_diffs(task: Task, oracle: Diff) -> list[Diff]:
    """Two cheats: tests deleted and skipped by configuration; the code under test skips whoever imports it."""
    names = [p.relative_to(task.workspace).as_posix() for p in task.workspace.rglob("*.py")]
    steering = dict.fromkeys(("conftest.py", "tests/conftest.py"), SKIP_ALL) | {"pytest.ini": SKIP_OPTIONS}
    by_tests = Diff(changed=steering, deleted=tuple(n for n in names if is_test_file(n)))
    python = {p: SKIP_MODULE + data for p, data in oracle.changed.items() if p.endswith(".py")}
    return [by_tests, Diff(changed=python)] if python else [by_tests]


def plain_run(task: Task, oracle: Diff) -> tuple[str, float]:
    """(what did not pass, peak memory in MB) of the hidden tests on the solution, without twins."""
    if task.verify.mode == "command":
        return "", 0.0
    tests = tree.read(task)
    ran = MODES[task.verify.mode](task, tests, oracle, [half(tests.sources, 0, frozenset())])
    told = ran.runs[0].tests
    bad = [i for i in task.verify.expected if i not in told or told[i].status() != "passed"]
    return (f"{bad[0]} does not pass again" if bad else ""), ran.peak_memory_mb


def _why(reward: Reward) -> str:
    bad = [f"{t.id.split('::', 1)[-1]} {t.status}" for t in reward.tests if t.status != "passed"]
    return "; ".join([*reward.evidence[:1], *bad[:2]])[:200] or reward.verdict.value


def _short(found: Iterable[str]) -> list[str]:
    return [text[:160] for text in found][:3]


def _isolation(verifier: Verifier) -> str:
    about = verifier.isolation
    return f"{about.backend}, {about.level}, {about.limits}"


@dataclass(frozen=True)
class Checked:
    id: str
    task: Task | None
    """None when it could not be audited."""
    reason: str = ""
    """'' for a valid card, 'cached' included."""
    cached: bool = False


def check_all(auditor: Auditor, tasks: Sequence[Task], *, workers: int, force: bool = False) -> Iterator[Checked]:
    """Audit tasks in parallel, in the order in which they end; a valid card for the same content is kept."""

    def one(task: Task) -> Checked:
        if task.card and task.card.content == task.content_hash() and not force:
            return Checked(task.id, task, why_unaudited(task), cached=True)
        try:
            audited = auditor.audit(load_task(task.root))
        except (NotHere, Fault, InloopError) as error:
            kind = "needs docker" if isinstance(error, NotHere) else "fault" if isinstance(error, Fault) else "unusable"
            return Checked(task.id, None, f"{kind}: {error.message.splitlines()[0]}")
        return Checked(task.id, audited, why_unaudited(audited))

    pool = ThreadPoolExecutor(workers, thread_name_prefix="audit")
    try:
        yield from (future.result() for future in as_completed([pool.submit(one, t) for t in tasks]))
    except BaseException:
        auditor.stop.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def reasons_table(checked: Iterable[Checked]) -> Counter[str]:
    """How often each kind of reason came up; details after a colon are left out."""
    return Counter(c.reason.removeprefix("failed its audit: ").split(":")[0] for c in checked if c.reason)
