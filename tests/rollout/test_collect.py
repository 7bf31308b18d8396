from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rollout.conftest import GIVE_UP, SOLVE
from rollout.test_run import Dying, Flaky, Make

from inloop.errors import DataError, EngineFault, Fault, InloopError, SandboxFault
from inloop.files import locked
from inloop.harness.loop import Cancel
from inloop.rollout.collect import FAULTS, PLAN, SUMMARY, Plan, collect
from inloop.rollout.run import Rollouts, Work
from inloop.rollout.summary import Summary
from inloop.tasks.task import Task
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Trajectory
from inloop.types import StopReason

SMALL = Plan(k=2, concurrency=3)


def go(
    tasks: list[Task], run: Rollouts | Callable[[Work, Cancel], Trajectory], out: Path, plan: Plan = SMALL
) -> Summary:
    do = run.run if isinstance(run, Rollouts) else run
    return collect(tasks, do, plan, out, scope="s", identity={"agent": "script"})


def test_a_collection_and_its_summary(rollouts: Make, tasks: list[Task], tmp_path: Path) -> None:
    out = tmp_path / "run"
    summary = go(tasks, rollouts(SOLVE, owner=str(out)), out)
    assert (summary.done, summary.passed, summary.scored, summary.ended) == (6, 6, 6, "complete")
    assert summary.leaked_sandboxes == 0 and not summary.faults
    stored = list(TrajectoryStore(out))
    assert len({t.id for t in stored}) == 6
    assert {t.task_id: 0 for t in stored} == {t.id: 0 for t in tasks}
    told = json.loads((out / SUMMARY).read_text())
    assert told["rate"] == 1.0 and told["stops"] == {"submitted": 6} and 0 < told["outside_model"] <= 1
    assert any("passed 6 of 6" in line for line in summary.lines())


def test_a_second_run_does_only_what_is_missing(rollouts: Make, tasks: list[Task], tmp_path: Path) -> None:
    go(tasks[:2], rollouts(SOLVE), tmp_path / "run")
    again = go(tasks, rollouts(GIVE_UP), tmp_path / "run", Plan(k=3, concurrency=3))
    assert (again.before, again.done, again.wanted) == (4, 5, 9)
    assert (again.passed, again.scored) == (4, 9)  # the rate is that of the ledger
    assert len({t.id for t in TrajectoryStore(tmp_path / "run")}) == 9


def test_another_plan_in_the_same_folder_is_refused(rollouts: Make, tasks: list[Task], tmp_path: Path) -> None:
    go(tasks[:1], rollouts(SOLVE), tmp_path / "run")
    with pytest.raises(DataError, match="seed: 0 there, 1 now"):
        go(tasks[:1], rollouts(SOLVE), tmp_path / "run", Plan(k=2, seed=1))
    (tmp_path / "run" / PLAN).write_text('{"torn')
    with pytest.raises(DataError, match=PLAN):
        go(tasks[:1], rollouts(SOLVE), tmp_path / "run")


def test_two_runs_in_one_folder(rollouts: Make, tasks: list[Task], tmp_path: Path) -> None:
    with locked(tmp_path / "run", "inloop collect"), pytest.raises(DataError, match="in use by inloop collect"):
        go(tasks, rollouts(SOLVE), tmp_path / "run")


def test_faults_are_kept_apart_and_done_again(rollouts: Make, tasks: list[Task], tmp_path: Path) -> None:
    out = tmp_path / "run"
    broken = go(tasks, rollouts(SOLVE, backend=Flaky(99), retries=0), out)
    assert broken.faults == {"sandbox_fault": 6} and broken.rate is None and len(TrajectoryStore(out)) == 0
    assert len((out / FAULTS).read_text().splitlines()) == 6
    mended = go(tasks, rollouts(SOLVE), out)
    assert (mended.done, mended.passed) == (6, 6)


def test_an_engine_that_is_gone_ends_the_run(rollouts: Make, tasks: list[Task], tmp_path: Path) -> None:
    out = tmp_path / "run"
    engine = Dying(SOLVE, range(9, 10_000))
    with pytest.raises(EngineFault, match="in a row"):
        go(tasks, rollouts(engine, retries=0), out, Plan(k=20, concurrency=2))
    held = len(TrajectoryStore(out))
    assert held and json.loads((out / SUMMARY).read_text())["ended"] == "engine gone"
    assert engine.calls < 60
    back = go(tasks, rollouts(SOLVE), out, Plan(k=4, concurrency=2))
    assert back.before + back.done == 12


def test_an_engine_that_is_back_in_time_is_forgiven(rollouts: Make, tasks: list[Task], tmp_path: Path) -> None:
    summary = go(tasks, rollouts(Dying(SOLVE, range(5, 12))), tmp_path / "run")
    assert summary.done == 6 and not summary.faults and summary.counts["retries"] >= 1


def test_the_deadline_cancels_what_runs(rollouts: Make, tasks: list[Task], tmp_path: Path) -> None:
    slow = rollouts(["```bash\nsleep 9\n```"])
    started = time.monotonic()
    summary = go(tasks, slow, tmp_path / "run", Plan(k=2, concurrency=2, max_seconds=1.5))
    assert summary.ended == "deadline" and summary.done == 0 and summary.cancelled == 2
    assert time.monotonic() - started < 15
    assert len(TrajectoryStore(tmp_path / "run")) == 0


def test_the_token_budget_begins_no_more(tasks: list[Task], tmp_path: Path) -> None:
    def run(work: Work, cancel: Cancel) -> Trajectory:
        return Trajectory(id=work.id, stop=StopReason.SUBMITTED, counts={"sampled_tokens": 100}, timings={"total": 1.0})

    summary = go(tasks, run, tmp_path / "run", Plan(k=20, concurrency=1, max_tokens=950))
    assert summary.ended == "token budget" and summary.done == 10


def test_a_rollout_that_never_came_back_is_a_fault(tasks: list[Task], tmp_path: Path) -> None:
    def run(work: Work, cancel: Cancel) -> Trajectory:
        raise SandboxFault("a worker process died")

    summary = go(tasks[:1], run, tmp_path / "run")
    assert summary.faults == {"sandbox_fault": 2}
    assert "worker process died" in (tmp_path / "run" / FAULTS).read_text()


def test_a_mistake_of_the_user_ends_the_run_and_keeps_what_is_done(tasks: list[Task], tmp_path: Path) -> None:
    made = threading.Event()

    def run(work: Work, cancel: Cancel) -> Trajectory:
        if work.index == 0:
            made.set()
            return Trajectory(id=work.id, stop=StopReason.SUBMITTED)
        made.wait(5)
        raise InloopError("no such model", fix="name another")

    with pytest.raises(InloopError, match="no such model") as caught:
        go(tasks[:1], run, tmp_path / "run")
    assert not isinstance(caught.value, Fault)
    assert len(TrajectoryStore(tmp_path / "run")) == 1


def inloop(*args: object, **kw: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from inloop.cli.main import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, **kw)


@pytest.fixture
def taskset(tasks: list[Task], tmp_path: Path) -> Path:
    return tmp_path / "tasks"


def test_the_command(taskset: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["```test```", "```submit```"]))
    common = ["collect", "--tasks", taskset, "--engine", "scripted", "--model", script, "--out", tmp_path / "run"]
    first = inloop(*common, "--k", 2, "--limit", 1, "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["done"] == 2 and not first.stderr
    more = inloop(*common, "--k", 2, "--limit", 2)
    assert "2 were there before" in more.stdout and "trajectories.jsonl" in more.stdout
    (tmp_path / "h.toml").write_text('tools = ["read", "submit"]\nmax_turns = 2\n')
    other = inloop(*common, "--harness", tmp_path / "h.toml")
    assert other.returncode == 2 and "another collection" in other.stderr and "--out" in other.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--engine", "warp"], "embedded"),
        (["--model", "no/such-model"], "unknown model"),
        (["--engine", "scripted", "--model", "nowhere.json"], "no script"),
        (["--engine", "vllm", "--url", "http://127.0.0.1:9"], "127.0.0.1:9"),
        (["--engine", "expert", "--split", "nope"], "no task passes the filter"),
        (["--engine", "expert", "--set", "harness.max_turnz=3"], "max_turns"),
        (["--engine", "expert", "--sandbox", "cardboard"], "cardboard"),
        (["--engine", "expert", "--processes", "2", "--ray", "local"], "choose one"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(taskset: Path, tmp_path: Path, args: list[str], words: str) -> None:
    run = inloop("collect", "--tasks", taskset, "--out", tmp_path / "run", *args)
    assert run.returncode == 2 and words in run.stderr and "Traceback" not in run.stderr
