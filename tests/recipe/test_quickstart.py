"""The main job from end to end, as a person runs it: stopped in three stages, gone on with, and looked at again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inloop.recipe.config import STAGES
from inloop.sandbox.lease import leases
from inloop.trace.store import read_trajectories

COMMAND = [sys.executable, "-c", "from inloop.cli.main import main; main()", "quickstart", "--fast", "--json"]


def in_session(number: int) -> list[str]:
    """What runs in a session: command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == number and state != "Z":
                found.append((folder / "cmdline").read_text().replace("\0", " "))
    return found


class Quickstart:
    def __init__(self, root: Path) -> None:
        self.out = root / "run-fast"
        self.command = [*COMMAND, "--out", str(root / "run")]

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    def stages(self) -> list[str]:
        file = self.out / "stages.jsonl"
        return [json.loads(x)["stage"] for x in file.read_text().splitlines()] if file.is_file() else []

    def stop_when(self, ripe: Callable[[], bool], with_signal: int) -> None:
        process = self.start()
        until = time.monotonic() + 400
        while not ripe():
            assert process.poll() is None and time.monotonic() < until, process.communicate()
            time.sleep(0.05)
        os.kill(process.pid, with_signal)
        process.communicate(timeout=60)
        assert process.returncode != 0
        until = time.monotonic() + 60
        while left := in_session(process.pid):  # a rollout process that outlives its trainer holds sandboxes
            assert time.monotonic() < until, left
            time.sleep(0.1)

    def finish(self) -> dict[str, Any]:
        process = self.start()
        said, told = process.communicate(timeout=600)
        assert process.returncode == 0, told
        summary: dict[str, Any] = json.loads(said)
        return summary


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_stopped_in_three_stages_and_gone_on_with(tmp_path: Path) -> None:
    run = Quickstart(tmp_path)
    run.stop_when(lambda: (run.out / "expert/trajectories.jsonl").is_file(), signal.SIGINT)
    run.stop_when(lambda: (run.out / "sft/metrics.jsonl").is_file(), signal.SIGKILL)
    run.stop_when(lambda: (run.out / "grpo/groups.jsonl").is_file(), signal.SIGTERM)
    summary = run.finish()
    assert run.stages() == list(STAGES)  # each once, in order
    assert set(summary["scores"]) == {"base", "sft", "grpo"} and summary["receipt"]
    assert set(summary["verdicts"]) == {"base -> sft", "sft -> grpo"}
    for name in ("base", "sft", "grpo"):
        assert summary["scores"][name]["tasks_scored"] == 3
    for folder in ("expert", "grpo", "evaluations/base", "evaluations/grpo"):
        good, skipped = read_trajectories(run.out / folder)
        ids = [t.id for t in good]
        assert len(set(ids)) == len(ids) > 0 and not [s for s in skipped if s.kind == "duplicate"]
    page = (run.out / "report.html").read_text("utf-8")
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert not [x for x in leases() if str(run.out) in x.owner and x.alive]

    before = {p: p.stat().st_mtime_ns for p in run.out.rglob("*.jsonl")}
    assert run.finish()["scores"] == summary["scores"]  # all of it was done before
    assert {p: p.stat().st_mtime_ns for p in run.out.rglob("*.jsonl")} == before
