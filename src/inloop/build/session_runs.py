"""The tests of a session on both sides: what fails where it began and passes where it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from inloop.build.draft import Drop
from inloop.build.source import Tree
from inloop.build.suite import TEST_SECONDS, Job, JobResult, TestRun, lab
from inloop.build.testsplit import TestFile, file_of, function_of

SECONDS = 120.0
KEPT = ("passed", "flaky")


@dataclass(frozen=True)
class Runs:
    failing: tuple[TestRun, ...]
    """As they fail at the start, the most telling one first; they pass at the end."""
    passing: tuple[TestRun, ...]
    """On both sides, in the same files."""
    good: frozenset[str]
    """Ids that pass at the end, twice, quickly."""
    unusable: frozenset[str]


def both(start: Mapping[str, bytes], end: Tree, is_test_side: Callable[[str], bool], owner: str) -> Runs:
    """The session's tests on the code that it began with, and on its own. Raises Drop with what is wrong.

    All tests of the repository count, also those that it did not touch; where they run for too long, those alone
    that it added or changed."""
    changed = tuple(p for p in end.test_files if start.get(p) != end.files[p])
    base = {p: d for p, d in start.items() if not is_test_side(p)}
    base |= {p: d for p, d in end.files.items() if is_test_side(p) or ".dist-info/" in p}
    before_tree = Tree(end.name, end.version, base)
    if not end.test_files:
        raise Drop("the repository has no tests at its end")
    try:
        before, after = _runs(before_tree, end, end.test_files, owner)
    except Drop:
        if not changed or changed == end.test_files:
            raise
        before, after = _runs(before_tree, end, changed, owner)
    return _judged(before, after, changed, end)


def _runs(
    before: Tree, after: Tree, tests: tuple[str, ...], owner: str
) -> tuple[dict[str, TestRun], dict[str, TestRun]]:
    jobs = [Job("run", tests, {}, SECONDS), Job("again", tests, {}, SECONDS)]
    out = []
    for tree in (before, after):
        with lab(tree, owner) as place:
            out.append(_agreed(place.run(jobs)))
    return out[0], out[1]


def _agreed(results: Mapping[str, JobResult]) -> dict[str, TestRun]:
    """What both runs say; a test that they disagree on is 'flaky'."""
    first, second = results.get("run"), results.get("again")
    if first is None or second is None or 124 in (first.exit, second.exit):
        raise Drop("the tests run for ever or are killed")
    same = {i: i in second.tests and second.tests[i].outcome == t.outcome for i, t in first.tests.items()}
    return {i: t if same[i] else replace(t, outcome="flaky") for i, t in first.tests.items()}


def _judged(before: Mapping[str, TestRun], after: Mapping[str, TestRun], changed: tuple[str, ...], end: Tree) -> Runs:
    good = frozenset(i for i, t in after.items() if t.outcome == "passed" and t.seconds <= TEST_SECONDS)
    if not any(t.outcome == "passed" for t in after.values()):
        raise Drop("no test passes where it ended")
    stayed = [i for i, t in before.items() if t.outcome == "passed" and file_of(i) not in changed]
    if any(i not in after or after[i].outcome not in KEPT for i in stayed):
        raise Drop("it broke tests that passed before")
    failing = [before.get(i) or _uncollected(i, end) for i in good if i not in before or before[i].outcome not in KEPT]
    if not failing:
        raise Drop("no test fails where it began and passes where it ended")
    failing.sort(key=lambda t: (file_of(t.id) not in changed, t.line == 0, t.id))
    near = {file_of(t.id) for t in failing}
    kept = (i for i in sorted(good) if file_of(i) in near and i in before and before[i].outcome == "passed")
    return Runs(tuple(failing), tuple(after[i] for i in kept), good, frozenset(after.keys() - good))


def _uncollected(test_id: str, end: Tree) -> TestRun:
    """A test whose file can't even be imported at the start; `line` is its first statement that asserts or calls."""
    path, name = file_of(test_id), function_of(test_id).partition("::")[2]
    line = TestFile(path, end.files[path]).first_check(name)
    return TestRun(id=test_id, outcome="error", exception="ImportError", line=line)
