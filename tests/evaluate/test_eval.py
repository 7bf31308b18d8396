"""`inloop eval` on real tasks in the sandbox, with an API model behind a server on loopback."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from harness.tiny_task import FIX, write_task
from typer.testing import CliRunner, Result

from inloop import progress
from inloop.cli.eval_ import app
from inloop.tasks.taskset import Taskset

SOLVE = ("```read calc.py```", "```test```", FIX, "```test```", "```submit```")
GIVE_UP = ("```submit```",)
PROMPT_TOKENS, ANSWER_TOKENS = 100, 10


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


def agent(asked: dict[str, Any]) -> tuple[int, str]:
    """Solves a task on its even seeds, gives up on the odd ones: half of the samples pass."""
    turn = sum(m["role"] == "assistant" for m in asked["messages"])
    replies = SOLVE if asked["seed"] % 2 == 0 or turn else GIVE_UP
    return 200, replies[min(turn, len(replies) - 1)]


@contextmanager
def api(answer: Callable[[dict[str, Any]], tuple[int, str]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An OpenAI-compatible server of one model, which knows only `answer`; yields its address and what it was asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(request)
            status, text = answer(request)
            message = {"role": "assistant", "content": text}
            usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": ANSWER_TOKENS, "total_tokens": 110}
            body: dict[str, Any] = {
                "id": "a", "object": "chat.completion", "created": 1, "model": "big", "usage": usage,
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            }  # fmt: skip
            raw = json.dumps(body if status == 200 else {"error": {"message": text}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
    with api(agent) as (url, asked):
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
    tokens = calls * PROMPT_TOKENS, calls * ANSWER_TOKENS
    assert summary["cost"]["total"] == pytest.approx((tokens[0] * 2 + tokens[1] * 10) / 1e6)
    assert first["checkpoint"] == {"model": "big", "engine": "chat", "fingerprint": "big"}
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert len(rows) == 8 and sum(float(r["reward"]) for r in rows) == passed
    stored = (out / "trajectories.jsonl").read_text()
    assert '"token_ids":[' not in stored, "an API tells no token ids, and none may be made up"


def test_a_changed_verifier_rescores_without_sampling(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "big"
    with api(agent) as (url, asked):
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
    with api(lambda asked: (500, "on fire") if broken else agent(asked)) as (url, _):
        found = evaluated(url, tasks, out, "--limit", 1)["summary"]
        assert found["pass@1"]["mean"] is None and found["samples"] == 0
        assert sum(found["faults"].values()) == 4 and found["tasks_without_score"] == ["easy"]
        broken.clear()
        found = evaluated(url, tasks, out, "--limit", 1)["summary"]
    assert found["samples"] == 4 and found["pass@1"]["mean"] is not None and not found["faults"]


def test_a_refused_request_is_told_and_ends_the_evaluation(tasks: Path, tmp_path: Path) -> None:
    with api(lambda _: (400, "no such model size")) as (url, _):
        done = run("big", "--engine", "chat", "--url", url, "--tasks", tasks, "--out", tmp_path / "o", "--k", 1)
    assert done.exit_code != 0 and "no such model size" in str(done.exception)


def test_settings_are_compared_in_a_matrix(tasks: Path, tmp_path: Path) -> None:
    with api(agent) as (url, _):
        cells = evaluated(url, tasks, tmp_path / "m", "--vary", 'harness.sensors=[];["syntax"]')
    assert [c["name"] for c in cells] == ["sensors=none", "sensors=syntax"]  # type: ignore[index]
    assert cells[1]["against_first"]["comparison"]["verdict"] == "can't tell"  # type: ignore[index]
