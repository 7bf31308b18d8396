"""A repository's own test suite, run in the sandbox: which tests pass, what they reach, what a change breaks."""

from __future__ import annotations

import json
import os
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
from inloop.sandbox.launch import Data, Launch, Overlay, launch
from inloop.tasks.folder import write_files
from inloop.tasks.task import Limits

LIMITS = Limits(memory_mb=1024, processes=128, disk_mb=256)
SUITE_SECONDS = 300.0
TEST_SECONDS = 0.5
"""Of CPU: slower tests don't judge tasks, they would slow every rollout."""
WORKDIR = "/workspace"
PREFIX = "inloop-build-"


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
    params: tuple[str, ...] = ()
    """'name = value' of a parametrized test that failed."""


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
    """Of CPU time: a loaded machine does not change what is found. Of wall time, four times as many and 20 more."""
    trace: bool = False
    limit: float = 0.0
    """CPU seconds of one test, after which it fails; 0 for none."""


class Lab:
    """A tree on disk, over which batches of pytest jobs run, each batch in a fresh sandbox. Thread safe."""

    def __init__(self, tree: Tree, folder: Path, owner: str) -> None:
        self.tree, self.folder, self.owner = tree, folder, owner
        self.path = tuple(f"{WORKDIR}/{p}".removesuffix("/.") for p in tree.python_path)
        self.probe = resources.files("inloop.build.inside").joinpath("inloop_probe.py").read_bytes()

    def run(self, jobs: Sequence[Job]) -> dict[str, JobResult]:
        """Results by key; a job without one was lost with its sandbox (time, memory).

        Raises SandboxFault when the runner did not start at all."""
        results: dict[str, JobResult] = {}
        with tempfile.TemporaryFile() as out:
            seconds = sum(4 * job.seconds + 25 for job in jobs) + 30
            complaint = self._launch(jobs, out.fileno(), seconds)
            out.seek(0)
            for line in out.read().splitlines():
                if (data := _parsed(line)) is not None:
                    results[str(data["key"])] = _result(data)
        if not results and jobs and complaint:
            raise SandboxFault(f"the test runner did not start: {complaint[-300:]}")
        return results

    def _launch(self, jobs: Sequence[Job], out: int, seconds: float) -> str:
        """Run the probe over the jobs; what it complained of if it ended badly before its time was up."""
        asked = json.dumps([self._job(job) for job in jobs]).encode()
        limits = replace(LIMITS, wall_seconds=seconds, cpu_seconds=seconds)
        spec = Launch(
            argv=("python3", "/job/inloop_probe.py", "/job/jobs.json", "3"),
            mounts=(
                Overlay(self.folder, WORKDIR),
                Data(self.probe, "/job/inloop_probe.py"),
                Data(asked, "/job/jobs.json"),
            ),
            limits=limits,
            fds={3: out},
            cwd=WORKDIR,
            owner=self.owner,
        )
        with launch(spec) as running:
            code = running.wait(seconds)
            if code is None:
                running.kill(deadline=True)
                return ""
            return running.complaints or f"exit code {code}" if code else ""

    def _job(self, job: Job) -> dict[str, Any]:
        files = {name: data.decode("utf-8", "surrogateescape") for name, data in job.files.items()}
        return {
            "key": job.key,
            "files": files,
            "tests": list(job.tests),
            "path": list(self.path),
            "seconds": job.seconds,
            "trace": job.trace,
            "limit": job.limit,
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
            params=tuple(str(p)[:200] for p in entry.get("params", ())),
        )
    errors = [f"{e.get('id', '')}: {str(e.get('message', ''))[-400:]}" for e in data.get("errors", ())]
    if data.get("log"):
        errors.append(str(data["log"])[-400:])
    return JobResult(int(data["exit"]), tests, tuple(errors))


@contextmanager
def lab(tree: Tree, owner: str) -> Iterator[Lab]:
    """`tree` laid out in a temporary folder that is gone afterwards; what killed builds left is removed first."""
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        write_files(folder / "tree", tree.files)
        yield Lab(tree, folder / "tree", owner)


def _sweep(folder: Path) -> None:
    for path in folder.glob(f"{PREFIX}*-*"):
        pid = path.name.removeprefix(PREFIX).split("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class Baseline:
    """The suite as it stands: what passes twice, and what was left out and why."""

    tree: Tree
    tests: dict[str, TestRun]
    """Tests that passed twice, with what they reach."""
    dropped: dict[str, str]
    """Test id or file -> reason: failing, skipped, flaky, can't be collected."""
    seconds: float


def baseline(tree: Tree, owner: str) -> Baseline:
    """Run the suite in the sandbox: once as it is, then what passed once more, traced.

    Raises TaskError: no tests, nothing passes (with the first error), or a native build is needed."""
    tree = with_metadata(tree)
    files = tuple(p for p in tree.test_files if not p.startswith(("examples/", "benchmarks/")))
    if not files:
        raise TaskError(f"{tree.name} has no tests (no test_*.py in it)", fix="use a repository that carries its tests")
    with lab(tree, owner) as place:
        first = _whole(place, Job("plain", files, {}, SUITE_SECONDS, limit=2 * TEST_SECONDS))
        if not any(t.outcome == "passed" for t in first.tests.values()):
            raise _nothing_passes(tree, first)
        quick = tuple(t.id for t in first.tests.values() if t.outcome == "passed" and t.seconds <= TEST_SECONDS)
        second = _whole(place, Job("traced", quick, {}, SUITE_SECONDS, trace=True))
    return _compare(tree, first, second)


def _whole(place: Lab, job: Job) -> JobResult:
    result = place.run([job]).get(job.key)
    if result is None or result.exit in (70, 124):
        raise TaskError(
            f"{place.tree.name}: the suite did not end in {job.seconds:.0f} s of CPU time and {LIMITS.memory_mb} MB",
            fix="use a package with a smaller suite",
        )
    return result


def _compare(tree: Tree, first: JobResult, second: JobResult) -> Baseline:
    passing, dropped = {}, {}
    for test in first.tests.values():
        again = second.tests.get(test.id)
        if test.seconds > TEST_SECONDS:
            dropped[test.id] = f"test takes over {TEST_SECONDS} s"
        elif test.outcome != "passed":
            dropped[test.id] = "test is skipped" if test.outcome == "skipped" else "test fails as it stands"
        elif again is None or again.outcome != "passed":
            dropped[test.id] = "test is flaky"
        else:
            passing[test.id] = replace(again, seconds=test.seconds)
    for error in first.errors:
        dropped[error.split(": ")[0] or "collection"] = "test file can't be collected"
    if not passing:
        raise TaskError(f"{tree.name}: no test passes twice in under {TEST_SECONDS} s", fix="use another package")
    return Baseline(tree, passing, dropped, sum(t.seconds for t in first.tests.values()))


def _nothing_passes(tree: Tree, result: JobResult) -> TaskError:
    first = (result.errors or tuple(f"{t.id}: {t.exception}: {t.message}" for t in result.failed) or ("no test ran",))[
        0
    ]
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
    return sorted(found, key=lambda t: (len(t.reached), t.id))


def test_files_of(tests: Sequence[str]) -> list[str]:
    return sorted({file_of(t) for t in tests})
