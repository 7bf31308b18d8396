"""`inloop eval` on real tasks in the sandbox, with an API model behind a server on loopback."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine.chat_server import reply, served
from harness.tiny_task import FIX, write_task
from typer.testing import CliRunner, Result

from inloop import progress
from inloop.cli.eval_ import app
from inloop.tasks.taskset import Taskset

SOLVE = ("```read calc.py```", "```test```", FIX, "```test```", "```submit```")
GIVE_UP = ("```submit```",)
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@pytest.fixture(autouse=True)
def loud_again() -> Iterator[None]:
    yield
    progress.quiet = False


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    root = tmp_path / "tasks"
    for name in ("easy", "hard", "other"):
        write_task(root, name)
    taskset = Taskset.scan(root)
    Taskset(root, [replace(r, split="train" if r.id == "other" else "test") for r in taskset.rows]).save()
    return root


def agent(asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Solves a task on its even seeds, gives up on the odd ones."""
    turn = sum(m["role"] == "assistant" for m in asked["messages"])
    replies = SOLVE if asked["seed"] % 2 == 0 or turn else GIVE_UP
    return 200, reply(USAGE, content=replies[min(turn, len(replies) - 1)])


def failing(status: int, why: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"message": why}}


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(w) for w in words])


def evaluated(url: str, tasks: Path, out: Path, *more: object) -> dict[str, Any]:
    done = run("big", "--engine", "chat", "--url", url, "--tasks", tasks, "--out", out, "--k", 4, "--json", *more)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_an_api_model_is_scored_resumed_priced_and_exported(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "big"
    prices = ("--set", "price_in=2.0", "--set", "price_out=10.0")
    with served(agent) as (url, asked):
        first = evaluated(url, tasks, out, *prices)
        calls = len(asked)
        again = evaluated(url, tasks, out, *prices, "--export", "csv")
        assert len(asked) == calls, "what is stored is not sampled again"
    summary = first["summary"]
    passed = sum(row["passed"] for row in first["rows"])
    assert {row["id"] for row in first["rows"]} == {"easy", "hard"} and summary["samples"] == 8
    assert 0 < passed < 8 and summary["pass@1"]["mean"] == passed / 8
    assert summary["stops"] == {"submitted": 8} and not summary["faults"]
    assert again["summary"]["pass@1"] == summary["pass@1"]
    assert summary["cost"]["total"] == pytest.approx(calls * (100 * 2.0 + 10 * 10.0) / 1e6)
    assert first["checkpoint"] == {"model": "big", "engine": "chat", "fingerprint": "big"}
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert len(rows) == 8 and sum(float(r["reward"]) for r in rows) == passed
    stored = (out / "trajectories.jsonl").read_text()
    assert '"token_ids":[' not in stored, "an API tells no token ids, and none may be made up"


def test_a_changed_verifier_rescores_without_sampling(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "big"
    with served(agent) as (url, asked):
        first = evaluated(url, tasks, out)
        calls = len(asked)
        hidden = tasks / "easy" / "tests" / "test_calc.py"
        hidden.write_text(hidden.read_text().replace("== 5", "== 6"))
        again = evaluated(url, tasks, out, "--rescore")
        assert len(asked) == calls
    before, after = ({r["id"]: r["passed"] for r in found["rows"]} for found in (first, again))
    assert before["easy"] > 0 == after["easy"] and before["hard"] == after["hard"]
    assert again["summary"]["rescored"] == 8


def test_a_broken_api_is_a_fault_and_never_a_zero(tasks: Path, tmp_path: Path) -> None:
    out, broken = tmp_path / "big", [True]
    with served(lambda asked: failing(500, "on fire") if broken else agent(asked)) as (url, _):
        found = evaluated(url, tasks, out, "--limit", 1)["summary"]
        assert found["pass@1"]["mean"] is None and found["samples"] == 0
        assert sum(found["faults"].values()) == 4 and found["tasks_without_score"] == ["easy"]
        broken.clear()
        found = evaluated(url, tasks, out, "--limit", 1)["summary"]
    assert found["samples"] == 4 and found["pass@1"]["mean"] is not None and not found["faults"]


def test_a_refused_request_is_told_and_ends_the_evaluation(tasks: Path, tmp_path: Path) -> None:
    with served(lambda _: failing(400, "no such model size")) as (url, _):
        done = run("big", "--engine", "chat", "--url", url, "--tasks", tasks, "--out", tmp_path / "o", "--k", 1)
    assert done.exit_code != 0 and "no such model size" in str(done.exception)


def test_settings_are_compared_in_a_matrix(tasks: Path, tmp_path: Path) -> None:
    with served(agent) as (url, _):
        cells = evaluated(url, tasks, tmp_path / "m", "--vary", 'harness.sensors=[];["syntax"]')
    assert [c["name"] for c in cells] == ["sensors=none", "sensors=syntax"]  # type: ignore[index]
    assert cells[1]["against_first"]["comparison"]["verdict"] == "can't tell"  # type: ignore[index]
