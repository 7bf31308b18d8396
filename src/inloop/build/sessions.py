"""`sessions`: what people's own sessions did in a repository becomes tasks, where the sandbox can prove it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from inloop.build.audit import Auditor
from inloop.build.builders import config_of
from inloop.build.draft import Draft, Drop, assemble, divide
from inloop.build.functions import short
from inloop.build.git import Repository, is_git_source
from inloop.build.instruct import session_request
from inloop.build.run import FOLDER, Ledger, Plan, Report, build, guarded
from inloop.build.session_read import Session, read_session
from inloop.build.session_replay import Replay, patched, replay
from inloop.build.session_runs import Runs, both
from inloop.build.source import MAX_FILE, MAX_TREE, Tree, is_test_file, licence_of, with_metadata
from inloop.errors import TaskError
from inloop.files import write_json
from inloop.sandbox.backends import open_backend
from inloop.sandbox.base import Diff
from inloop.tasks.folder import save_metadata
from inloop.tasks.task import Provenance, Task
from inloop.trace.open import open_traces
from inloop.trace.redact.apply import Redactor
from inloop.trace.trajectory import Trajectory

KNOWN = 4
"""Commits whose files are kept in memory."""
TEST_FOLDERS = {"tests", "test", "testing"}


@dataclass(frozen=True, kw_only=True)
class SessionSource:
    """Where the sessions were held."""

    repo: str
    """A folder or URL that git can clone."""
    commit: str = ""
    """Where sessions began that recorded no commit; '' takes the newest one before their first message."""
    redactor: Redactor | None = None
    """None leaves secrets in: for sessions and repositories that hold none."""


def build_sessions(
    paths: Sequence[Path],
    source: SessionSource,
    out: Path,
    n: int,
    *,
    seed: int = 0,
    workers: int = 2,
    audit: bool = True,
) -> Report:
    """A task of each session that can be verified; the others are counted with their reason and stay trace data.

    Raises TaskError for what is no repository, or a `commit` that it lacks; DataError when `paths` name nothing."""
    if not is_git_source(source.repo):
        raise TaskError(f"{source.repo} is no git repository", fix="give the repository that the sessions were held in")
    with Repository.open(source.repo) as repository:
        given = repository.commit(source.commit)
        if source.commit and not given:
            raise TaskError(f"{repository.name} has no commit {source.commit}", fix="give one that `git log` lists")
        dropped: Counter[str] = Counter()
        candidates = list(_candidates(paths, source.redactor, dropped))
        work = Sessions(repository, given, source.redactor, out, seed, Auditor(audit))
        head = Tree(repository.name, repository.head(), {})
        plan = Plan(
            name=f"sessions-{short(repository.name)}",
            # sessions are added as time goes by, and the repository grows: neither makes it another build
            config=config_of("sessions", replace(head, version=given), seed, audit=audit, redact=bool(source.redactor)),
            candidates=candidates,
            attempt=work.attempt,
            dropped=dropped,
            per_unit=max(1, len(candidates)),
            stop=work.auditor.stop,
        )
        return _of_these(build(plan, out, n, workers=workers), plan)


def _of_these(report: Report, plan: Plan[Session]) -> Report:
    """The ledger also holds what earlier sessions came to; the report tells of these, and leaves none out."""
    folder = report.out / FOLDER
    entries = Ledger(folder / f"{plan.name}.jsonl", plan.config).entries
    known = [entries[c.key] for c in plan.candidates if c.key in entries]
    report.drops = Counter(e["drop"] for e in known if "drop" in e)
    report.tried = len(known)
    if untried := len(plan.candidates) - len(known):
        report.skipped["not tried: there are tasks enough"] += untried
    write_json(folder / f"{plan.name}.drops.json", report.as_json())
    return report


def _candidates(paths: Iterable[Path], redactor: Redactor | None, dropped: Counter[str]) -> Iterator[Session]:
    """Sessions that say enough, each once; the others are counted. Only what is needed of each is kept."""
    seen: set[str] = set()
    for path in paths:
        found, skipped = open_traces(path)
        for trajectory in found:
            session = _session(trajectory, redactor)
            if isinstance(session, str):
                dropped[session] += 1
            elif session.key in seen:
                dropped["the same session was read before"] += 1
            else:
                seen.add(session.key)
                yield session
        dropped.update(f"unreadable: {s.reason}" for s in skipped if s.kind in ("session", "file"))


def _session(trajectory: Trajectory, redactor: Redactor | None) -> Session | str:
    if redactor is None:
        return read_session(trajectory)
    cutter = redactor.cutter()
    redactor.trajectory(trajectory, cutter)
    session = read_session(trajectory)
    return session if isinstance(session, str) else replace(session, secrets=dict(cutter.secrets))


@dataclass(frozen=True)
class Sides:
    """A session's repository as it began and as it ended, both without secrets."""

    start: Mapping[str, bytes]
    end: Tree


@dataclass(frozen=True)
class Sessions:
    repository: Repository
    commit: str
    redactor: Redactor | None
    out: Path
    seed: int
    auditor: Auditor
    backend: str = "bubblewrap"
    known: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Commit -> its files."""

    def attempt(self, batch: Sequence[Session]) -> Iterator[tuple[Session, Task | Drop]]:
        yield from guarded(batch, self._make)

    def _make(self, session: Session) -> Task:
        commit = self._began(session)
        sides = self._sides(session, commit)
        runs = both(sides.start, sides.end, is_test_side, f"build sessions {session.key}")
        draft = self._draft(session, commit, sides, runs)
        division = divide(draft, random.Random(f"{self.seed}:{session.key}"))
        file = division.files[division.shown.id.split("::")[0]]
        task = assemble(draft, self.out, session_request(session.words, division.shown, file), division)
        task = replace(task, meta={"session": session.trajectory})
        save_metadata(task)
        return self.auditor.admit(task)

    def _began(self, session: Session) -> str:
        """The commit that it recorded; else the one that was given; else the newest one before its first message."""
        if session.commit:
            if found := self.repository.commit(session.commit):
                return found
            raise Drop("its commit is not in the repository")
        if self.commit:
            return self.commit
        if session.began and (found := self.repository.commit_at(session.branch, session.began)):
            return found
        raise Drop("it recorded neither commit nor time, and no --commit was given")

    def _sides(self, session: Session, commit: str) -> Sides:
        session, start = self._clean(session, self._files(commit))
        diff = self._ended(session, start)
        changed = {p: d for p, d in diff.changed.items() if _kept(p, d)}
        end = {p: d for p, d in (dict(start) | changed).items() if p not in diff.deleted}
        return Sides(start, with_metadata(Tree(self.repository.name, commit, end, licence_of(start))))

    def _files(self, commit: str) -> dict[str, bytes]:
        """Kept for the sessions that began there as well; not for all commits of a long history."""
        files = self.known.get(commit)
        if files is None:
            files = self.repository.files(commit)[0]
            if sum(map(len, files.values())) > MAX_TREE:
                raise Drop(f"the repository has over {MAX_TREE >> 20} MB of files")
            if len(self.known) >= KNOWN:
                self.known.clear()
            self.known[commit] = files
        return files

    def _clean(self, session: Session, files: Mapping[str, bytes]) -> tuple[Session, dict[str, bytes]]:
        """Session and files with the same placeholders for the same secrets, so that edits still fit."""
        if self.redactor is None:
            return session, dict(files)
        cutter = self.redactor.cutter(session.secrets)
        texts = {p: d.decode("utf-8", "surrogateescape") for p, d in files.items() if b"\0" not in d}
        for text in texts.values():
            cutter.learn(text)
        clean = {cutter.clean(p): cutter.clean(t).encode("utf-8", "surrogateescape") for p, t in texts.items()}
        clean |= {cutter.clean(p): d for p, d in files.items() if p not in texts}
        return replace(
            session,
            words=cutter.clean(session.words),
            steps=tuple(s.mapped(cutter.clean) for s in session.steps),
            patch=cutter.clean(session.patch),
            root=cutter.clean(session.root),
        ), clean

    def _ended(self, session: Session, start: Mapping[str, bytes]) -> Diff:
        """By the patch of the trace where that applies (long ones are clipped), else by the steps."""
        if session.patch:
            try:
                return patched(session.patch, start)
            except Drop:
                if not session.steps:
                    raise
        diff, doing = replay(
            session.steps,
            start,
            session.root,
            open_backend(self.backend),
            fresh=session.fresh_shell,
            owner=f"build sessions {session.key}",
        )
        if diff.empty:
            raise Drop(_nothing(doing))
        return diff

    def _draft(self, session: Session, commit: str, sides: Sides, runs: Runs) -> Draft:
        end = sides.end.files
        broken = {p: d for p, d in sides.start.items() if end.get(p) != d and not is_test_side(p)}
        gone = frozenset(p for p in end if p not in sides.start and not is_test_side(p) and ".dist-info/" not in p)
        if not broken and not gone:
            raise Drop("it changed nothing but tests")
        return Draft(
            id=f"{short(self.repository.name)}-sessions-{session.key}",
            tree=sides.end,
            broken=broken,
            failing=runs.failing,
            passing=runs.passing,
            all_ids=runs.good,
            unusable=runs.unusable,
            provenance=Provenance(
                builder="sessions",
                repository=self.repository.name,
                commit=commit,
                licence=sides.end.licence,
                seed=self.seed,
                unit=session.unit,
                kind="session",
            ),
            gone=gone,
        )


def is_test_side(path: str) -> bool:
    """Tests and what they need: the hidden tests run among these as the session left them."""
    pure = PurePosixPath(path)
    return is_test_file(path) or pure.name == "conftest.py" or bool(TEST_FOLDERS & set(pure.parts[:-1]))


def _kept(path: str, data: bytes) -> bool:
    """What belongs to the work: text of a sensible size. Databases, caches and archives that commands left do not."""
    return len(data) <= MAX_FILE and (b"\0" not in data or is_test_side(path))


def _nothing(doing: Replay) -> str:
    if doing.failed and not doing.applied:
        return "its edits do not apply to its start"
    return "it changed nothing in the repository" if not doing.outside else "it changed files outside of the repository"
