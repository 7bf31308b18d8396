"""Runs pytest jobs inside the sandbox: which tests pass, what each reaches, and how one fails.

`python inloop_probe.py JOBS FD`: JOBS is a JSON list of {key, files, tests, path, seconds, limit, trace}; each
job lays its files over the workspace, runs pytest in a fork of this process (pytest is imported once, the product
never), and puts the files back. One JSON line a job is written to the descriptor FD, which the forks do not have."""

import contextlib
import importlib.machinery
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # as the verifier does: a task can't need a plug-in that it lacks

import pytest

CLIP = 2000
COMMON = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-o", "addopts=", "-o", "required_plugins="]
COMMON += ["--continue-on-collection-errors", "-W", "ignore::pytest.PytestConfigWarning"]


class Probe:
    """A pytest plugin that records outcomes, and with `trace` the first lines of the code that a test calls."""

    def __init__(self, root: str, trace: bool, limit: float) -> None:
        self.root, self.trace, self.limit = root + os.sep, trace, limit
        self.tests: dict[str, dict[str, Any]] = {}
        self.errors: list[dict[str, str]] = []
        self._names: dict[str, str | None] = {}
        self._reached: set[tuple[str, int]] = set()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append({"id": report.nodeid, "message": str(report.longrepr)[-CLIP:]})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._reached = set()
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self.limit)
        if self.trace:
            threading.settrace(self._call)
            sys.settrace(self._call)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            sys.settrace(None)
            threading.settrace(None)
            entry = self.tests.setdefault(item.nodeid, {"outcome": "error"})
            entry["seconds"] = round(time.process_time() - start, 4)
            if self.trace:
                entry["reached"] = sorted(self._reached)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report: pytest.TestReport = yield
        entry = self.tests.setdefault(item.nodeid, {"outcome": "passed"})
        if report.failed:
            entry["outcome"] = "failed" if call.when == "call" else "error"
            entry |= self._failure(item, call)
        elif (report.skipped or hasattr(report, "wasxfail")) and entry["outcome"] == "passed":
            entry["outcome"] = "skipped"
        return report

    def _failure(self, item: pytest.Item, call: pytest.CallInfo[None]) -> dict[str, Any]:
        if call.excinfo is None:
            return {}
        lines = [t.lineno + 1 for t in call.excinfo.traceback if Path(str(t.path)) == item.path]
        message = call.excinfo.value.args[0] if call.excinfo.value.args else ""
        with contextlib.suppress(Exception):
            message = str(call.excinfo.value)
        return {
            "exception": call.excinfo.typename,
            "message": str(message)[:CLIP],
            "line": lines[-1] if lines else 0,
            "params": parameters(item),
        }

    def _call(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        name = self._names.get(code.co_filename, "")
        if name == "" and code.co_filename.startswith("<"):
            name = self._names[code.co_filename] = None
        elif name == "":
            path = str(Path(self.root, code.co_filename))
            name = self._names[code.co_filename] = path[len(self.root) :] if path.startswith(self.root) else None
        if name is not None:
            self._reached.add((name, code.co_firstlineno))


def parameters(item: pytest.Item) -> list[str]:
    """'name = value' of each parameter of the test, short ones only."""
    out = []
    for name, value in getattr(getattr(item, "callspec", None), "params", {}).items():
        with contextlib.suppress(Exception):
            text = f"{name} = {value!r}"
            out += [text] if len(text) < 200 and "\n" not in text else []
    return out


class TooSlow(BaseException):
    """A test used up its CPU time; no `except Exception` of the test or the product may take it."""


def too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def keep_rewritten_tests() -> None:
    """Let pytest keep its rewritten test files for the next job; code under test is always compiled anew, since its
    text differs from job to job within one second."""
    sys.dont_write_bytecode = False
    sys.pycache_prefix = f"{tempfile.gettempdir()}/pycache"
    importlib.machinery.SourceFileLoader.set_data = lambda *_, **__: None  # type: ignore[method-assign]


def run_pytest(job: dict[str, Any], out: str) -> None:
    """In the fork: run, write the result, leave without any exit handler."""
    os.setpgid(0, 0)
    seconds = max(1, round(job["seconds"]))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(out + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    root = str(Path.cwd())
    sys.path[:] = [*job["path"], *[p for p in sys.path if p != str(Path(__file__).parent)]]
    os.environ["PYTHONPATH"] = os.pathsep.join(job["path"])
    keep_rewritten_tests()
    signal.signal(signal.SIGPROF, too_slow)
    probe = Probe(root, job.get("trace", False), job.get("limit", 0.0))
    code = pytest.main([*COMMON, *job["tests"]], plugins=[probe])
    result = {"exit": int(code), "tests": probe.tests, "errors": probe.errors}
    Path(out + ".part").write_text(json.dumps(result))
    Path(out + ".part").rename(out)
    os._exit(0)


def finish(pid: int, seconds: float) -> bool:
    """Wait for the fork and end its process group; False when its CPU or wall time ran out."""
    end = time.monotonic() + 4 * seconds + 20
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            in_time = not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGXCPU
            break
        if time.monotonic() > end:
            in_time = False
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            break
        time.sleep(0.004)
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    return in_time


def one(job: dict[str, Any], scratch: Path, number: int) -> dict[str, Any]:
    """Lay the job's files, run it, put the files back."""
    before = {name: Path(name).read_bytes() if Path(name).is_file() else None for name in job["files"]}
    out = scratch / "result.json"
    try:
        for name, text in job["files"].items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))
        out.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            try:
                os.close(number)
                run_pytest(job, str(out))
            finally:
                os._exit(70)
        in_time = finish(pid, job["seconds"])
    finally:
        for name, data in before.items():
            Path(name).unlink(missing_ok=True) if data is None else Path(name).write_bytes(data)
    if out.is_file():
        return {"key": job["key"], **json.loads(out.read_text())}
    log = Path(f"{out}.log")
    tail = log.read_text("utf-8", "replace")[-CLIP:] if log.is_file() else ""
    return {"key": job["key"], "exit": 124 if not in_time else 70, "tests": {}, "errors": [], "log": tail}


def main() -> None:
    jobs = json.loads(Path(sys.argv[1]).read_text())
    number = int(sys.argv[2])
    os.set_inheritable(number, False)
    with tempfile.TemporaryDirectory() as scratch, os.fdopen(number, "w") as out:
        for job in jobs:
            out.write(json.dumps(one(job, Path(scratch), number)) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
