"""The verifier as its callers meet it: folders of every kind, faults, memory of verdicts, commands, command line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from inloop.errors import InloopError, TaskError
from inloop.sandbox import lease
from inloop.sandbox.base import Diff
from inloop.tasks.task import Task, VerifySpec
from inloop.types import Verdict
from inloop.verify import tester
from inloop.verify.verifier import CACHED, Verifier, expected_ids

BROKEN, FIXED = "def f(x): return x\n", "def f(x): return x + 1\n"
TESTS = {"test_a.py": "from a import f\ndef test_a(): assert f(1) == 2\ndef test_b(): assert f(4) == 5\n"}


@pytest.fixture(scope="module")
def task(make_task: Any) -> Task:
    return make_task({"a.py": BROKEN, "b.txt": "b"}, TESTS, {"a.py": FIXED}, mode="split", modules=("a",))


@pytest.fixture
def folder(task: Task, tmp_path: Path) -> Path:
    """A workspace in which the work is done."""
    (tmp_path / "a.py").write_text(FIXED)
    (tmp_path / "b.txt").write_text("b")
    return tmp_path


def test_a_folder_is_judged_by_what_changed_in_it(verifier: Verifier, task: Task, folder: Path) -> None:
    assert verifier.verify(task, folder).value == 1.0
    assert verifier.verify(task, task.workspace).value == 0.0


def test_strange_workspaces(verifier: Verifier, task: Task, folder: Path) -> None:
    """Devices, sockets, FIFOs, links, gigantic files and names that are no text are left out and told."""
    os.mkfifo(folder / "pipe.py")
    (folder / "link.py").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to(".")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.py")).write_text("x")
    with (folder / "huge.py").open("wb") as file:
        file.truncate(1 << 42)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(folder / "sock.py"))
        reward = verifier.verify(task, folder)
    assert reward.value == 1.0
    left_out = " ".join(reward.evidence)
    for word in ("pipe.py", "link.py", "loop", "caf", "huge.py", "sock.py"):
        assert word in left_out
    assert all(line.isprintable() for line in reward.evidence)


def test_no_folder_and_no_task(verifier: Verifier, task: Task, tmp_path: Path) -> None:
    with pytest.raises(InloopError, match="No such file"):
        verifier.verify(task, tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InloopError):
        verifier.verify(task, tmp_path / "file")


@pytest.mark.parametrize(
    "spec, why",
    [
        (VerifySpec(mode="forked", expected=("x",)), "no hidden tests"),
        (VerifySpec(mode="forked", tests=("test_none.py",), expected=("x",)), "not there"),
        (VerifySpec(mode="forked", tests=("test_bad.py",), expected=("x",)), "invalid syntax"),
        (VerifySpec(mode="forked", tests=("test_a.py",)), "no expected"),
    ],
)
def test_malformed_tasks_are_named(verifier: Verifier, tmp_path: Path, spec: VerifySpec, why: str) -> None:
    for name in ("environment/workspace", "tests", "solution"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "tests" / "test_a.py").write_text("def test_a(): pass\n")
    (tmp_path / "tests" / "test_bad.py").write_text("def (\n")
    with pytest.raises(TaskError, match=why):
        verifier.verify(Task(id="t", root=tmp_path, instruction="", verify=spec), Diff())


def test_expected_ids_need_a_solution_that_passes(verifier: Verifier, make_task: Any) -> None:
    good = make_task({"a.py": BROKEN}, TESTS, {"a.py": FIXED}, mode="forked", build=False)
    assert expected_ids(good, verifier) == ("test_a.py::test_a", "test_a.py::test_b")
    bad = make_task({"a.py": BROKEN}, TESTS, {"a.py": "def f(x): return 2\n"}, mode="forked", build=False)
    with pytest.raises(TaskError, match="test_b: failed"):
        expected_ids(bad, verifier)


def test_the_same_diff_is_remembered_and_said_so(task: Task) -> None:
    own = Verifier()
    diff = Diff(changed={"a.py": FIXED.encode()})
    first, second = own.verify(task, diff), own.verify(task, diff)
    assert first.value == second.value == 1.0 and CACHED not in first.evidence and CACHED in second.evidence
    assert CACHED not in own.verify(task, Diff(changed={"a.py": b"def f(x): return x + 2\n"})).evidence


def test_a_test_process_that_dies_is_replaced(verifier: Verifier, task: Task) -> None:
    diff = Diff(changed={"a.py": FIXED.encode()})
    assert verifier.verify(task, diff).value == 1.0
    tester.shared().job.kill()
    assert verifier.verify(task, diff).value == 1.0


def test_a_machine_that_fails_is_a_fault_and_no_reward(task: Task, folder: Path) -> None:
    """Host-side evidence: there is no place for sandboxes to be kept in."""
    env = os.environ | {"INLOOP_RUN_DIR": "/proc/nowhere"}
    run = cli(str(task.root), str(folder), "--json", env=env)
    assert run.returncode == 2 and "Traceback" not in run.stderr, run.stderr
    found = json.loads(run.stdout)
    assert found["value"] is None and found["verdict"] == "fault" and found["fraction"] is None


def test_many_at_once_and_nothing_is_left(task: Task) -> None:
    own = Verifier(cache=False)
    values: list[float | None] = []
    good, bad = Diff(changed={"a.py": FIXED.encode()}), Diff()

    def work(diff: Diff) -> None:
        values.append(own.verify(task, diff).value)

    threads = [threading.Thread(target=work, args=(d,)) for d in (good, bad) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(values) == [0.0] * 4 + [1.0] * 4  # type: ignore[type-var]
    mine = [x for x in lease.leases() if x.process == lease.process_key(os.getpid())]
    assert [x.owner for x in mine if "test process" not in x.owner] == []


def test_commands(verifier: Verifier, make_task: Any) -> None:
    tests = {"check.sh": 'test "$(cat answer.txt)" = 42 && test -e b.txt\n'}
    spec: dict[str, Any] = {"mode": "command", "command": ("bash", "/tests/check.sh"), "allow": ("*.txt",)}
    task = make_task({"answer.txt": "?", "b.txt": "b"}, tests, {"answer.txt": "42"}, **spec)
    good = verifier.verify(task, Diff(changed={"answer.txt": b"42"}))
    assert good.value == 1.0 and good.mode == "command" and any("weaker" in e for e in good.evidence)
    assert verifier.verify(task, Diff()).value == 0.0
    assert verifier.verify(task, Diff(changed={"answer.txt": b"42"}, deleted=("b.txt",))).value == 0.0
    slow = make_task({"answer.txt": "?"}, tests, {}, **(spec | {"command": ("sleep", "60"), "wall_seconds": 2.0}))
    assert verifier.verify(slow, Diff()).verdict is Verdict.TIMEOUT
    spin = ("bash", "-c", "while :; do :; done")
    burn = make_task({"a.txt": ""}, tests, {}, **(spec | {"command": spin, "wall_seconds": 20.0, "cpu_seconds": 0.5}))
    assert verifier.verify(burn, Diff()).verdict is Verdict.TIMEOUT


def cli(*arguments: str, env: Any = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inloop.cli.main", "verify", *arguments]
    code = f"import sys; sys.argv = ['inloop', *{command[3:]!r}]; from inloop.cli.main import main; main()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)


def test_command_line(task: Task, folder: Path, tmp_path: Path) -> None:
    good = cli(str(task.root), str(folder))
    assert good.returncode == 0 and "passed" in good.stdout and "test_a.py::test_b" in good.stdout, good
    less = cli(str(task.root), str(task.workspace), "--json")
    found = json.loads(less.stdout)
    assert less.returncode == 1 and found["value"] == 0.0 and found["verdict"] == "failed" and len(found["tests"]) == 2
    for bad in ((str(tmp_path / "none"), str(folder)), (str(task.root), str(tmp_path / "none"))):
        run = cli(*bad)
        assert run.returncode == 2 and "error" in run.stderr and "fix" in run.stderr and "Traceback" not in run.stderr


def test_interrupted_runs_leave_nothing(make_task: Any, tmp_path: Path) -> None:
    tests = {"test_a.py": "from a import f\ndef test_a(): assert f() == 1\n"}
    task = make_task({"a.py": ""}, tests, {"a.py": "def f(): return 1\n"}, mode="forked")
    (tmp_path / "a.py").write_text("import time\ntime.sleep(60)\n")
    code = f"import sys; sys.argv = ['inloop', 'verify', {str(task.root)!r}, {str(tmp_path)!r}]\n"
    code += "from inloop.cli.main import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    key = lease.process_key(process.pid)
    end = time.monotonic() + 60
    while not [x for x in lease.leases() if x.process == key] and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    while [x for x in lease.leases() if x.process == key] and time.monotonic() < end:
        time.sleep(0.05)
    assert [x for x in lease.leases() if x.process == key] == []
