"""`commits`: git history mined for commits whose tests fail on the parent and pass on the commit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inloop.build.audit import Auditor
from inloop.build.builders import config_of
from inloop.build.draft import Draft, Drop, assemble, divide
from inloop.build.functions import key_of, provenance, short
from inloop.build.git import Commit, Repository, is_git_source
from inloop.build.instruct import bug_report
from inloop.build.run import Plan, Report, build, guarded
from inloop.build.source import Tree, is_product, is_test_file, licence_of, with_metadata
from inloop.build.suite import TEST_SECONDS, Job, JobResult, TestRun, lab
from inloop.errors import TaskError
from inloop.tasks.task import Task

MAX_COMMITS = 2000
MAX_PRODUCT_FILES = 8
SECONDS = 120.0


@dataclass(frozen=True)
class Change:
    """A candidate: a commit that touches both product and tests."""

    key: str
    commit: Commit = field(repr=False)

    @property
    def unit(self) -> str:
        return self.commit.sha

    def paths(self, wanted: str) -> list[str]:
        """Changed paths of kind 'product' or 'tests', deleted ones included."""
        test = {"product": is_product, "tests": is_test_file}[wanted]
        return [path for _, path in self.commit.changed if test(path)]


def build_commits(
    spec: str, out: Path, n: int, *, seed: int = 0, workers: int = 2, audit: bool = True, limit: int = MAX_COMMITS
) -> Report:
    """Tasks from the newest `limit` commits of a repository. Raises TaskError when it is none, or has none that fit."""
    if not is_git_source(spec):
        raise TaskError(f"{spec} is no git repository", fix="give a repository with its history, or a git URL")
    with Repository.open(spec) as repository:
        head = repository.head()
        dropped: Counter[str] = Counter()
        changes = list(_changes(repository, seed, limit, dropped))
        if not changes:
            raise TaskError(
                f"{repository.name}: no commit of {sum(dropped.values())} changes both code and tests",
                fix="use a repository whose fixes come with tests",
            )
        mine = Mine(repository, out, seed, Auditor(audit))
        plan = Plan(
            name=f"commits-{short(repository.name)}",
            config=config_of("commits", Tree(repository.name, head, {}), seed, limit=limit, audit=audit),
            candidates=changes,
            attempt=mine.attempt,
            dropped=dropped,
            per_unit=1,
            stop=mine.auditor.stop,
        )
        return build(plan, out, n, workers=workers)


def _changes(repository: Repository, seed: int, limit: int, dropped: Counter[str]) -> Iterator[Change]:
    for commit in repository.commits(limit):
        change = Change(key_of(seed, commit.sha, b""), commit)
        product = change.paths("product")
        if not product:
            dropped["commit without a change to code"] += 1
        elif not change.paths("tests"):
            dropped["commit without a change to tests"] += 1
        elif len(product) > MAX_PRODUCT_FILES:
            dropped[f"commit that changes over {MAX_PRODUCT_FILES} files of code"] += 1
        else:
            yield change


@dataclass(frozen=True)
class Mine:
    repository: Repository
    out: Path
    seed: int
    auditor: Auditor

    def attempt(self, batch: Sequence[Change]) -> Iterator[tuple[Change, Task | Drop]]:
        yield from guarded(batch, self._make)

    def _make(self, change: Change) -> Task:
        before, after = self._tree(change.commit.parent), self._tree(change.commit.sha)
        tests = [p for p in change.paths("tests") if p in after.files]
        if not tests:
            raise Drop("the commit only deletes tests")
        product = change.paths("product")
        broken = {p: before.files[p] for p in product if p in before.files}
        gone = frozenset(p for p in product if p not in before.files)
        base = {p: d for p, d in after.files.items() if p not in gone} | broken
        fails, passes = self._both(change, base, after, tests)
        draft = self._draft(change, after, broken, gone, fails, passes)
        rng = random.Random(f"{self.seed}:{change.key}")
        division = divide(draft, rng)
        file = division.files[division.shown.id.split("::")[0]]
        task = assemble(draft, self.out, bug_report(division.shown, file, rng), division)
        return self.auditor.admit(task)

    def _tree(self, commit: str) -> Tree:
        files, skipped = self.repository.files(commit)
        return with_metadata(Tree(self.repository.name, commit, files, licence_of(files), tuple(skipped)))

    def _both(
        self, change: Change, base: Mapping[str, bytes], after: Tree, tests: Sequence[str]
    ) -> tuple[dict[str, TestRun], dict[str, TestRun]]:
        """(all runs on the parent's code, all runs on the commit), both with the commit's tests."""
        owner = f"build commits {change.commit.sha[:10]}"
        job = Job("run", tuple(tests), {}, SECONDS)
        results = []
        for files in (base, after.files):
            with lab(Tree(after.name, after.version, dict(files)), owner) as place:
                results.append(_ended(place.run([job, Job("again", tuple(tests), {}, SECONDS)])))
        return results[0], results[1]

    def _draft(
        self,
        change: Change,
        after: Tree,
        broken: Mapping[str, bytes],
        gone: frozenset[str],
        fails: Mapping[str, TestRun],
        passes: Mapping[str, TestRun],
    ) -> Draft:
        good = {i for i, t in passes.items() if t.outcome == "passed" and t.seconds <= TEST_SECONDS}
        failing = [_missing(i, fails) for i in sorted(good) if i not in fails or fails[i].outcome != "passed"]
        if not failing:
            raise Drop("no test fails before the commit and passes after")
        failing.sort(key=lambda t: (t.line == 0, t.id))
        origin = provenance(after, "commits", self.seed, change.commit.sha, "commit")
        return Draft(
            id=f"{short(after.name)}-commits-{change.commit.sha[:12]}",
            tree=after,
            broken=broken,
            failing=tuple(failing),
            passing=tuple(passes[i] for i in sorted(good) if i in fails and fails[i].outcome == "passed"),
            all_ids=frozenset(good),
            unusable=frozenset(set(passes) - good),
            provenance=origin,
            gone=gone,
        )


def _missing(test_id: str, runs: Mapping[str, TestRun]) -> TestRun:
    """How a test goes before the commit; one that could not even be collected fails by its import."""
    return runs.get(test_id, TestRun(id=test_id, outcome="error", exception="ImportError"))


def _ended(results: Mapping[str, JobResult]) -> dict[str, TestRun]:
    """Runs that agree; a test that differs between two runs counts as failing both times. Raises Drop."""
    first, second = results.get("run"), results.get("again")
    if first is None or second is None or 124 in (first.exit, second.exit):
        raise Drop("the tests run for ever or are killed")
    return {i: t for i, t in first.tests.items() if i in second.tests and second.tests[i].outcome == t.outcome}
