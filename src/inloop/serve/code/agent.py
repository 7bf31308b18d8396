"""`inloop code` without its command line: copy, work, test what is left, and keep the session as a trajectory."""

from __future__ import annotations

import posixpath
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from inloop import __version__
from inloop.errors import DataError
from inloop.evaluate.run import EvalSettings, serving
from inloop.harness.config import HarnessConfig
from inloop.harness.loop import Episode
from inloop.harness.policy import Policy, Turn, make_policy
from inloop.harness.tools import Observation
from inloop.rollout.engines import EngineConfig
from inloop.rollout.patch import unified
from inloop.rollout.workers import load_tokenizer
from inloop.sandbox.backends import DEFAULT, open_backend
from inloop.sandbox.base import Backend, CommandResult, Diff, Sandbox, SandboxSpec
from inloop.serve.code.apply import apply
from inloop.serve.code.copy import copy_repository
from inloop.serve.code.session import LEDGER, Session, data_folder, load_session, new_session
from inloop.tasks.task import Limits, Task
from inloop.trace.redact.apply import Redactor
from inloop.trace.redact.find import load_salt
from inloop.trace.store import TrajectoryStore
from inloop.types import Call, StopReason

ROOMY = Limits(
    wall_seconds=7200, command_seconds=180, cpu_seconds=7200, memory_mb=4096, processes=256, disk_mb=2048
)  # fmt: skip
"""People's repositories need more than a task's functions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSettings:
    model: str
    engine: EngineConfig = field(default_factory=EngineConfig)
    harness: HarnessConfig | None = None
    """None takes the checkpoint's."""
    test_command: str = "python -m pytest -q"
    max_turns: int = 0
    """0 takes the harness's."""
    sandbox: str = DEFAULT
    data: Path | None = None
    """Where sessions and the ledger are kept."""

    @property
    def root(self) -> Path:
        return self.data or data_folder()


class Watcher:
    """Told of each step as it happens; the command line shows it."""

    def copied(self, files: int, left_out: Counter[str]) -> None: ...

    def turn(self, number: int, turn: Turn) -> None: ...

    def results(self, results: Sequence[tuple[Call | None, Observation]]) -> None: ...


@dataclass(kw_only=True)
class WatchedEpisode(Episode):
    """The same loop; after each finished turn it is told and written down."""

    watcher: Watcher
    session: Session

    def query(self) -> Turn:
        turn = super().query()
        self.watcher.turn(int(self.counts["turns"]), turn)
        return turn

    def act(self, turn: Turn) -> list[tuple[Call | None, Observation]]:
        results = super().act(turn)
        self.watcher.results(results)
        return results

    def observe(self, results: list[tuple[Call | None, Observation]]) -> None:
        super().observe(results)
        self.keep()

    def keep(self) -> None:
        """The turn is finished: whatever happens from here on, the session goes on after it."""
        self.session.work = self.sandbox.diff()
        t = self.session.trajectory
        t.nodes, t.counts, t.timings, t.events = self.nodes, dict(self.counts), dict(self.timings), self.events
        self.session.save()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the agent left, and what the visible tests say of it in a sandbox where it never was."""

    session: Session
    stop: StopReason
    diff: Diff
    patch: str
    tests: CommandResult | None
    """None where nothing was changed, or there is no command to test with."""

    @property
    def fine(self) -> bool:
        """Something was changed, and the tests that there are pass."""
        return not self.diff.empty and (self.tests is None or self.tests.ok)


class Code:
    """One session from its beginning, or from where it was stopped."""

    def __init__(self, settings: CodeSettings, watcher: Watcher) -> None:
        self.settings, self.watcher = settings, watcher
        self.backend: Backend = open_backend(settings.sandbox)

    def begin(self, repository: Path, instruction: str) -> Session:
        """Raises DataError for what can't be worked on."""
        if not instruction.strip():
            raise DataError("the task is empty", fix='say what is to be done: inloop code "mend the failing test"')
        repository = repository.resolve()
        if self.settings.root.resolve().is_relative_to(repository):
            raise DataError(f"{self.settings.root} lies in the repository", fix="choose another --data")
        session = new_session(
            self.settings.root, repository=repository, instruction=instruction,
            test_command=self.settings.test_command, model=self.settings.model, engine=asdict(self.settings.engine),
            max_turns=self.settings.max_turns, harness="",
        )  # fmt: skip
        try:
            copied = copy_repository(repository, session.workspace)
        except BaseException:
            session.remove()
            raise
        self.watcher.copied(len(copied.files), copied.left_out)
        session.save()
        return session

    def resume(self, name: str) -> Session:
        return load_session(self.settings.root, name)

    def work(self, session: Session) -> Outcome:
        """Until the agent stops. What stops us instead (a fault, Ctrl-C) leaves a session to go on with."""
        with self._policy(session) as (policy, harness):
            task = self._task(session)
            sandbox = self.backend.open(self._spec(session, task))
            try:
                lay(sandbox, session.work)
                stop = self._episode(session, task, sandbox, policy, harness)
                diff = sandbox.diff()
            finally:
                sandbox.close()
        session.work, session.trajectory.stop = diff, stop
        session.save()
        return self.judge(session)

    def judge(self, session: Session) -> Outcome:
        """The visible tests on what was left, in a fresh sandbox."""
        diff, stop = session.work, session.trajectory.stop or StopReason.CANCELLED
        tests = None if diff.empty or not session.test_command else self._test(session)
        patch = unified(session.workspace, diff)
        return Outcome(session=session, stop=stop, diff=diff, patch=patch, tests=tests)

    def accept(self, outcome: Outcome) -> list[str]:
        """The diff into the repository. Raises DataError, with nothing changed, where it has changed meanwhile."""
        return apply(outcome.session.repository, outcome.session.workspace, outcome.diff)

    def store(self, outcome: Outcome, *, accepted: bool) -> Path:
        """Redacted into the ledger, for the stages that learn; the session's own files go."""
        session, t = outcome.session, outcome.session.trajectory
        t.diff = outcome.patch
        t.counts["files_changed"] = len(outcome.diff.changed) + len(outcome.diff.deleted)
        tests = None if outcome.tests is None else outcome.tests.ok
        t.meta |= {"accepted": accepted, "visible_tests_passed": tests, "repository": session.repository.name}
        Redactor(load_salt()).trajectory(t)
        store = TrajectoryStore(self.settings.root / LEDGER)
        store.append(t)
        session.remove()
        return store.path

    @contextmanager
    def _policy(self, session: Session) -> Iterator[tuple[Policy, HarnessConfig]]:
        engine = EngineConfig(**session.engine)
        settings = EvalSettings(model=session.model, engine=engine, harness=self.settings.harness)
        with serving(settings) as (opened, harness, about):
            if session.max_turns:
                harness = replace(harness, max_turns=session.max_turns)
            harness = replace(harness, wall_seconds=ROOMY.wall_seconds)
            if session.harness and session.harness != harness.hash() and session.trajectory.nodes:
                raise DataError(
                    f"session {session.id} began under harness {session.harness}, this one is {harness.hash()}",
                    fix="resume with the model and harness that it began with",
                )
            policy = make_policy(opened.engine, harness, load_tokenizer(opened.tokenizer))
            self._describe(session, policy, harness, about)
            yield policy, harness

    def _describe(self, session: Session, policy: Policy, harness: HarnessConfig, about: dict[str, Any]) -> None:
        session.harness = harness.hash()
        t = session.trajectory
        t.task_id, t.model, t.harness, t.tools = f"code-{session.id}", session.model, harness.record(), policy.schemas()
        t.agent = {"name": "inloop", "version": __version__}
        t.meta |= {"source": "code", "checkpoint": about}

    def _task(self, session: Session) -> Task:
        return Task(
            id=f"code-{session.id}", root=session.task_root, instruction=session.instruction,
            test_command=session.test_command, limits=ROOMY,
        )  # fmt: skip

    def _spec(self, session: Session, task: Task) -> SandboxSpec:
        return SandboxSpec(workspace=session.workspace, limits=task.limits, owner=f"inloop code {session.id}")

    def _episode(
        self, session: Session, task: Task, sandbox: Sandbox, policy: Policy, harness: HarnessConfig
    ) -> StopReason:
        t = session.trajectory
        t.meta["isolation"] = asdict(sandbox.isolation)
        episode = WatchedEpisode(
            task=task, sandbox=sandbox, policy=policy, config=harness, key=session.id, watcher=self.watcher,
            session=session, seed=int(session.id[-6:], 16), nodes=list(t.nodes), counts=Counter(t.counts),
            timings=dict(t.timings) or {"sampling": 0.0, "tools": 0.0, "tests": 0.0}, events=list(t.events),
        )  # fmt: skip
        stop = episode.run()
        if stop.is_fault:
            why = next((e["message"] for e in reversed(episode.events) if e["kind"] == stop.value), stop.value)
            raise DataError(f"stopped by a fault: {why}", fix=f"inloop code --resume {session.id}")
        t.nodes, t.counts, t.timings, t.events = (
            episode.nodes, dict(episode.counts), episode.timings, episode.events
        )  # fmt: skip
        return stop

    def _test(self, session: Session) -> CommandResult:
        task = self._task(session)
        sandbox = self.backend.open(self._spec(session, task))
        try:
            lay(sandbox, session.work)
            return sandbox.run(session.test_command, timeout=task.limits.command_seconds)
        finally:
            sandbox.close()


def lay(sandbox: Sandbox, work: Diff) -> None:
    """Changes into a pristine workspace."""
    for path in work.deleted:  # first: a file may have become a folder, and a folder a file
        folder = posixpath.dirname(path)
        empty = f"; rmdir -p -- {shlex.quote(folder)} 2>/dev/null" if folder else ""
        sandbox.run(f"rm -f -- {shlex.quote(path)}{empty}")
    for path, data in work.changed.items():
        sandbox.write(path, data)
