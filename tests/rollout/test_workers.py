from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from rollout.conftest import SOLVE
from rollout.test_collect import inloop

from inloop.engine.scripted import ScriptedChat
from inloop.harness.config import HarnessConfig
from inloop.harness.loop import Cancel
from inloop.rollout.collect import Plan, collect
from inloop.rollout.run import group
from inloop.rollout.workers import Recipe, processes
from inloop.tasks.task import Task
from inloop.trace.store import TrajectoryStore
from inloop.types import StopReason

CONFIG = HarnessConfig(max_turns=6)
SLEEP = ["```bash\necho $PPID > /dev/null; sleep 8\n```"]


def children() -> set[int]:
    """Processes that this one started and that are alive."""
    out = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            out.add(int(stat.parent.name))
    return out


@pytest.mark.slow
def test_two_processes_share_the_work(tasks: list[Task], tmp_path: Path) -> None:
    with processes(Recipe(engine=ScriptedChat(SOLVE), config=CONFIG), 2) as run:
        summary = collect(tasks, run, Plan(k=2, concurrency=4), tmp_path, scope="", identity={})
    assert (summary.done, summary.passed) == (6, 6)
    assert len({t.id for t in TrajectoryStore(tmp_path)}) == 6


@pytest.mark.slow
def test_a_process_that_is_killed_is_started_again(tasks: list[Task], tmp_path: Path) -> None:
    before = children()
    with processes(Recipe(engine=ScriptedChat(["```bash\nsleep 1\n```", *SOLVE]), config=CONFIG), 1) as run:
        (worker,) = children() - before - {p for p in children() if b"resource_tracker" in cmdline(p)}
        threading.Timer(0.8, os.kill, (worker, signal.SIGKILL)).start()
        summary = collect(tasks, run, Plan(k=1, concurrency=3), tmp_path, scope="", identity={})
    assert summary.done == 3 and summary.passed == 3
    assert not {p for p in children() - before if b"resource_tracker" not in cmdline(p)}


def cmdline(pid: int) -> bytes:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
def test_a_cancel_reaches_the_processes(task: Task) -> None:
    cancel = Cancel()
    with processes(Recipe(engine=ScriptedChat(SLEEP), config=CONFIG), 1) as run:
        threading.Timer(1.0, cancel.set).start()
        started = time.monotonic()
        done = run(group(task, 1, seed=0)[0], cancel)
    assert done.stop is StopReason.CANCELLED and time.monotonic() - started < 8


def over_ray(tasks: list[Task], tmp_path: Path, address: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, as a user runs it: Ray leaves its helpers to the end of the process."""
    pytest.importorskip("ray")
    (tmp_path / "script.json").write_text(json.dumps(SOLVE))
    where = ["--tasks", tasks[0].root.parent, "--out", tmp_path / "run", "--ray", address]
    what = ["--engine", "scripted", "--model", tmp_path / "script.json", "--k", 2, "--concurrency", 4]
    return inloop("collect", *where, *what, "--json", timeout=280)


@pytest.mark.slow
def test_a_ray_cluster(tasks: list[Task], tmp_path: Path) -> None:
    ran = over_ray(tasks, tmp_path, "local")
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["done"], told["passed"], told["faults"]) == (6, 6, {})
    assert len({t.id for t in TrajectoryStore(tmp_path / "run")}) == 6


@pytest.mark.slow
def test_no_cluster_there(tasks: list[Task], tmp_path: Path) -> None:
    ran = over_ray(tasks, tmp_path, "127.0.0.1:9")
    assert ran.returncode == 2 and "no Ray cluster" in ran.stderr and "Traceback" not in ran.stderr
