"""From a broken repository and the tests that notice it to a task folder: tests divided, patch, instruction."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from inloop.build.patch import make_patch
from inloop.build.source import Tree
from inloop.build.suite import TestRun
from inloop.build.testsplit import TestFile, file_of, function_of
from inloop.tasks.folder import write_task
from inloop.tasks.task import Limits, Provenance, Task, VerifySpec

MAX_HIDDEN_FAILING = 12
MAX_HIDDEN_PASSING = 6
SUPPORT_BYTES = 1 << 20
TASK_LIMITS = Limits(wall_seconds=600.0, command_seconds=60.0, memory_mb=512)


class Drop(Exception):
    """A candidate that can't become a task; the message is the counted reason."""


@dataclass(frozen=True)
class Draft:
    id: str
    tree: Tree
    """The repository as it should be, all tests in it."""
    broken: Mapping[str, bytes]
    """Files as the agent finds them."""
    failing: tuple[TestRun, ...]
    """Tests that fail on `broken` and pass on `tree`, the most telling one first."""
    passing: tuple[TestRun, ...]
    """Tests that reach the same code and pass on both."""
    all_ids: frozenset[str]
    """Every id that passes on `tree`: a test function is hidden only if all of its ids are among them."""
    unusable: frozenset[str]
    """Ids that fail, skip or are flaky on `tree`."""
    provenance: Provenance
    gone: frozenset[str] = field(default_factory=frozenset)
    """Files of `tree` that the agent's workspace lacks."""


@dataclass(frozen=True)
class Division:
    hidden: dict[str, set[str]]
    """Test file -> names ('Class::test') of its hidden functions."""
    expected: tuple[str, ...]
    shown: TestRun
    """The failing test that the instruction tells of."""
    files: dict[str, TestFile]


def divide(draft: Draft, rng: random.Random) -> Division:
    """Two thirds of the failing test functions are hidden, one at least, with some passing ones; all others stay.

    Raises Drop when no failing test function can be hidden."""
    files = _test_files(draft)
    failing = _hideable(draft, draft.failing, files)
    if not failing:
        raise Drop("no failing test can be hidden (inherited or generated tests)")
    passing = [f for f in _hideable(draft, draft.passing, files) if f not in failing]
    first, rest = failing[0], failing[1:]
    count = min(MAX_HIDDEN_FAILING, math.ceil(len(failing) * 2 / 3)) - 1
    chosen = [first, *rng.sample(rest, count), *rng.sample(passing, min(MAX_HIDDEN_PASSING, len(passing) // 2))]
    hidden: dict[str, set[str]] = {}
    for function in chosen:
        hidden.setdefault(file_of(function), set()).add(function.split("::", 1)[1])
    names = set(chosen)
    expected = tuple(sorted(i for i in draft.all_ids if function_of(i) in names))
    shown = next(t for t in draft.failing if function_of(t.id) == first)
    return Division(hidden, expected, shown, files)


def _test_files(draft: Draft) -> dict[str, TestFile]:
    out = {}
    for path in sorted({file_of(t.id) for t in (*draft.failing, *draft.passing)}):
        try:
            out[path] = TestFile(path, draft.tree.files[path])
        except (KeyError, SyntaxError):
            continue
    return out


def _hideable(draft: Draft, runs: Iterable[TestRun], files: Mapping[str, TestFile]) -> list[str]:
    """Test functions, in the order of `runs`, whose text is in their file and whose every id passes.

    One that other classes inherit stays visible: its canary twin would be inherited too."""
    bad = {function_of(i) for i in draft.unusable}
    out: dict[str, None] = {}
    for run in runs:
        function = function_of(run.id)
        path, _, name = function.partition("::")
        if path in files and name in files[path].functions and function not in bad and not files[path].inherited(name):
            out[function] = None
    return list(out)


def assemble(draft: Draft, root: Path, instruction: str, division: Division) -> Task:
    """Write the task folder. Raises Drop when the division leaves a file that does not parse."""
    workspace = {p: d for p, d in draft.tree.files.items() if p not in draft.gone} | dict(draft.broken)
    workspace = without_hidden(workspace, division.hidden)
    tests: dict[str, bytes | str] = dict(support(draft.tree, division.hidden))
    for path, names in division.hidden.items():
        tests[hidden_path(path)] = division.files[path].only(names)
    changed = {p: draft.tree.files[p] for p in (*draft.broken, *draft.gone) if p in draft.tree.files}
    removed = {p for p in draft.broken if p not in draft.tree.files}
    before = {p: d for p, d in draft.broken.items() if p in changed or p in removed}
    task = Task(
        id=draft.id,
        root=root / draft.id,
        instruction=instruction,
        limits=TASK_LIMITS,
        verify=VerifySpec(
            mode="forked",
            tests=tuple(sorted(map(hidden_path, division.hidden))),
            expected=tuple(map(hidden_path, division.expected)),
            allow=("**/*.py",),
            python_path=draft.tree.python_path,
        ),
        test_command=test_command(draft, workspace),
        provenance=draft.provenance,
    )
    try:
        patch = make_patch(before, changed)
    except ValueError:
        raise Drop("the fix touches a binary file") from None
    return write_task(
        task, workspace=workspace, tests=tests, solution={"patch.diff": patch.encode("utf-8", "surrogateescape")}
    )


def hidden_path(path: str) -> str:
    """Where a test file goes below the task's `tests/`, which is laid over the workspace's own `tests/`."""
    return path.removeprefix("tests/")


def without_hidden(files: Mapping[str, bytes], hidden: Mapping[str, set[str]]) -> dict[str, bytes]:
    """The files with the hidden test functions cut out; a test file that has none left is gone."""
    out = dict(files)
    for path, names in hidden.items():
        if path not in files:
            continue
        try:
            left = TestFile(path, files[path]).without(names)
            remaining = TestFile(path, left).functions
        except SyntaxError:
            raise Drop("the test file can't be divided") from None
        if remaining:
            out[path] = left
        else:
            del out[path]
    return out


def support(tree: Tree, hidden: Iterable[str]) -> dict[str, bytes]:
    """What lies beside hidden tests outside of `tests/`: helpers, conftest.py, data; bounded in size.

    The workspace's own `tests/` needs no copy: it is there, pristine, when the hidden tests run."""
    folders = {PurePosixPath(p).parent for p in hidden if not p.startswith("tests/") and "/" in p}
    found = {
        p: d for p, d in tree.files.items() if folders & set(PurePosixPath(p).parents) and p not in tree.test_files
    }
    small = {p: d for p, d in found.items() if len(d) < SUPPORT_BYTES // 4}
    if sum(map(len, small.values())) < SUPPORT_BYTES:
        return small
    return {p: d for p, d in small.items() if p.endswith(".py")}


def test_command(draft: Draft, workspace: Mapping[str, bytes]) -> str:
    """The visible tests that reach the code, or all of them."""
    near = {file_of(t.id) for t in (*draft.failing, *draft.passing)}
    files = sorted(p for p in near if p in workspace) or sorted(p for p in draft.tree.test_files if p in workspace)
    path = ":".join(p for p in draft.tree.python_path if p != ".")
    prefix = f"PYTHONPATH={path} " if path else ""
    return f"{prefix}python -m pytest -q -p no:cacheprovider -o addopts= {' '.join(files[:8])}".rstrip()
