"""A repository's own test suite, run in the sandbox: which tests pass, what they reach, what a change breaks."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from inloop.build.source import Tree, with_metadata
from inloop.build.testsplit import file_of
from inloop.errors import SandboxFault, TaskError
from inloop.sandbox.base import Backend, Sandbox, SandboxSpec
from inloop.tasks.folder import write_files
from inloop.tasks.task import Limits

LIMITS = Limits(
    wall_seconds=3600.0, command_seconds=900.0, cpu_seconds=3600.0, memory_mb=1024, processes=128, disk_mb=256
)
SUITE_SECONDS = 600.0
PROBE = ".inloop/inloop_probe.py"


@dataclass(frozen=True)
class TestRun:
    """What one test did, as the probe saw it."""

    __test__ = False
    id: str
    outcome: str
    """passed, failed, error, skipped."""
    seconds: float = 0.0
    reached: frozenset[tuple[str, int]] = frozenset()
    """(workspace path, first line) of the code that it called."""
    exception: str = ""
    message: str = ""
    line: int = 0
    """Of the test file, where it failed; 0 if that is not known."""


@dataclass(frozen=True)
class JobResult:
    exit: int
    """pytest's exit code; 124 when the time ran out, 70 when it died."""
    tests: dict[str, TestRun]
    errors: tuple[str, ...] = ()
    """Files that could not be collected, with the message."""

    @property
    def failed(self) -> list[TestRun]:
        return [t for t in self.tests.values() if t.outcome in ("failed", "error")]


@dataclass(frozen=True)
class Job:
    key: str
    tests: tuple[str, ...]
    """pytest arguments: files or ids."""
    files: Mapping[str, bytes]
    """Laid over the tree for this run."""
    seconds: float = 60.0
    trace: bool = False


class Lab:
    """One sandbox with a tree in it, in which pytest jobs run one after the other."""

    def __init__(self, sandbox: Sandbox, tree: Tree) -> None:
        self.sandbox, self.tree = sandbox, tree
        self.path = tuple(f"{sandbox.workdir}/{p}".removesuffix("/.") for p in tree.python_path)
        probe = resources.files("inloop.build.inside").joinpath("inloop_probe.py").read_bytes()
        sandbox.write(PROBE, probe)

    def run(self, jobs: Sequence[Job]) -> dict[str, JobResult]:
        """Results by key; a job without one was lost with the sandbox's command (time, memory) and is left out."""
        asked = [self._job(job) for job in jobs]
        self.sandbox.write(".inloop/jobs.json", json.dumps(asked).encode())
        self.sandbox.write(".inloop/out.jsonl", b"")
        limit = min(LIMITS.command_seconds, sum(job.seconds + 1 for job in jobs) + 20)
        command = f"cd {self.sandbox.workdir} && python {PROBE} .inloop/jobs.json .inloop/out.jsonl"
        done = self.sandbox.run(command, timeout=limit)
        results = {}
        for line in self.sandbox.read(".inloop/out.jsonl").splitlines():
            data = _parsed(line)
            if data is not None:
                results[str(data["key"])] = _result(data)
        if not results and not done.ok and jobs:
            raise SandboxFault(f"the test runner did not start: {(done.stderr or done.stdout).strip()[-300:]}")
        return results

    def _job(self, job: Job) -> dict[str, Any]:
        files = {name: data.decode("utf-8", "surrogateescape") for name, data in job.files.items()}
        return {
            "key": job.key,
            "files": files,
            "tests": list(job.tests),
            "path": list(self.path),
            "seconds": job.seconds,
            "trace": job.trace,
        }


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A result line; None for one that was cut off or is no result (the suite's code could have written there)."""
    try:
        data = json.loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) and isinstance(data.get("tests"), dict) and "key" in data else None


def _result(data: dict[str, Any]) -> JobResult:
    tests = {}
    for name, entry in data["tests"].items():
        tests[name] = TestRun(
            id=name,
            outcome=str(entry.get("outcome", "error")),
            seconds=float(entry.get("seconds", 0.0)),
            reached=frozenset((str(p), int(n)) for p, n in entry.get("reached", ())),
            exception=str(entry.get("exception", "")),
            message=str(entry.get("message", "")),
            line=int(entry.get("line", 0)),
        )
    errors = [f"{e.get('id', '')}: {str(e.get('message', ''))[-400:]}" for e in data.get("errors", ())]
    if data.get("log"):
        errors.append(str(data["log"])[-400:])
    return JobResult(int(data["exit"]), tests, tuple(errors))


@contextmanager
def lab(tree: Tree, backend: Backend, owner: str) -> Iterator[Lab]:
    """A sandbox over `tree`, closed and cleaned up afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="inloop-build-"))
    try:
        folder.chmod(0o755)
        write_files(folder / "tree", tree.files)
        sandbox = backend.open(SandboxSpec(workspace=folder / "tree", limits=LIMITS, owner=owner))
        try:
            yield Lab(sandbox, tree)
        finally:
            sandbox.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Baseline:
    """The suite as it stands: what passes twice, and what was left out and why."""

    tree: Tree
    tests: dict[str, TestRun]
    """Tests that passed in both runs, with what they reach."""
    dropped: dict[str, str]
    """Test id or file -> reason: failing, skipped, flaky, can't be collected."""
    seconds: float


def baseline(tree: Tree, backend: Backend, owner: str) -> Baseline:
    """Run the suite twice in the sandbox, the first time traced.

    Raises TaskError: no tests, nothing passes (with the first error), or a native build is needed."""
    tree = with_metadata(tree)
    files = [p for p in tree.test_files if not p.startswith(("examples/", "benchmarks/"))]
    if not files:
        raise TaskError(
            f"{tree.name} has no tests (no test_*.py in it)", fix="use a repository that carries its tests"
        )
    jobs = [
        Job(key=name, tests=tuple(files), files={}, seconds=SUITE_SECONDS / 2, trace=name == "traced")
        for name in ("traced", "again")
    ]
    with lab(tree, backend, owner) as place:
        results = place.run(jobs)
    for name in ("traced", "again"):
        if name not in results or results[name].exit in (70, 124):
            raise TaskError(
                f"{tree.name}: the test suite did not end in {SUITE_SECONDS / 2:.0f} s and {LIMITS.memory_mb} MB",
                fix="use a smaller suite",
            )
    return _compare(tree, results["traced"], results["again"])


def _compare(tree: Tree, first: JobResult, second: JobResult) -> Baseline:
    passing, dropped = {}, {}
    for test in first.tests.values():
        again = second.tests.get(test.id)
        if test.outcome == "passed" and again is not None and again.outcome == "passed":
            passing[test.id] = replace(test, seconds=again.seconds)
        elif again is not None and again.outcome != test.outcome:
            dropped[test.id] = "test is flaky"
        else:
            dropped[test.id] = "test is skipped" if test.outcome == "skipped" else "test fails as it stands"
    for error in first.errors:
        dropped[error.split(": ")[0] or "collection"] = "test file can't be collected"
    if not passing:
        raise _nothing_passes(tree, first)
    return Baseline(tree, passing, dropped, sum(t.seconds for t in passing.values()))


def _nothing_passes(tree: Tree, result: JobResult) -> TaskError:
    first = (
        result.errors or tuple(f"{t.id}: {t.exception}: {t.message}" for t in result.failed) or ("no test ran",)
    )[0]
    lines = [x.strip() for x in first.splitlines() if x.strip()]
    why = next((x for x in reversed(lines) if x.startswith("E ")), lines[-1])[:300]
    if tree.native:
        return TaskError(
            f"{tree.name} needs a native build ({tree.native}), which the builders don't do: {why}",
            fix="use a pure-Python package",
        )
    return TaskError(
        f"{tree.name}: no test of its suite passes in the sandbox: {why}",
        fix="install what it needs into the environment of inloop, or use another package",
    )


def functions_reached(baseline: Baseline, path: str, first: int, last: int) -> list[TestRun]:
    """Passing tests that call code starting on lines [first, last] of `path`; the most telling ones first."""
    found = [t for t in baseline.tests.values() if any(p == path and first <= n <= last for p, n in t.reached)]
    return sorted(found, key=lambda t: (len(t.reached), t.seconds, t.id))


def test_files_of(tests: Sequence[str]) -> list[str]:
    return sorted({file_of(t) for t in tests})
