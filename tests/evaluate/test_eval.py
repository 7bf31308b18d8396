"""`inloop eval` on real tasks in the sandbox, with an API model behind a server on loopback."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from engine.chat_server import listening, reply, served
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


@contextmanager
def hub(folder: Path, name: str) -> Iterator[str]:
    """A Hugging Face hub of one model, as far as `snapshot_download` asks for it; yields its address."""
    commit = "0123456789abcdef0123456789abcdef01234567"

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._file(body=False)

        def do_GET(self) -> None:
            files = sorted(folder.iterdir())
            if self.path.startswith(f"/api/models/{name}/tree/"):
                told: Any = [{"type": "file", "path": p.name, "size": p.stat().st_size, "oid": commit} for p in files]
            elif self.path.startswith(f"/api/models/{name}"):
                told = {"id": name, "sha": commit, "siblings": [{"rfilename": p.name} for p in files]}
            else:
                return self._file(body=True)
            self._send(json.dumps(told).encode(), "application/json")

        def _file(self, body: bool) -> None:
            file = folder / self.path.rpartition("/")[2]
            if self.path == f"/{name}/resolve/{commit}/{file.name}" and file.is_file():
                self._send(file.read_bytes(), "application/octet-stream", body)
            else:
                self.send_error(404)

        def _send(self, raw: bytes, kind: str, body: bool = True) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("ETag", f'"{hashlib.sha256(raw).hexdigest()}"')
            self.send_header("X-Repo-Commit", commit)
            self.end_headers()
            if body:
                self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            return None

    with listening(Handler) as url:
        yield url


def test_a_hugging_face_id_is_fetched_and_scored(tasks: Path, tiny_model: Path, tmp_path: Path) -> None:
    """In a process of its own: the hub's client reads its settings once."""
    words = ["acme/tiny", "--tasks", tasks, "--out", tmp_path / "o", "--k", 1, "--json",
             "--set", "engine.max_model_len=1024", "--harness", tmp_path / "harness.toml"]  # fmt: skip
    (tmp_path / "harness.toml").write_text("max_turns = 1\nmax_turn_tokens = 8\n")
    with hub(tiny_model, "acme/tiny") as url:
        env = {**os.environ, "HF_ENDPOINT": url, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home")}
        command = [sys.executable, "-c", "from inloop.cli.main import main; main()", "eval", *map(str, words)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["checkpoint"]["model"] == found["checkpoint"]["base"] == "acme/tiny"
    assert found["summary"]["samples"] == 2 and found["summary"]["pass@1"]["mean"] == 0.0
