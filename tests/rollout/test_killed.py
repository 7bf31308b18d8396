"""Nothing that was finished is lost, nothing is done twice, nothing stays behind, however a run ends."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness.tiny_task import write_task

from inloop.sandbox.lease import leases
from inloop.trace.store import read_trajectories

TASKS, K = 12, 10  # more than twenty kills can let through on a fast machine
KILLS = 20


class Run:
    """`inloop collect` over a script whose commands bear a mark that no other process has."""

    def __init__(self, root: Path) -> None:
        self.out = root / "run"
        self.mark = f"sleep 0.{random.randrange(10**8, 10**9)}"
        for i in range(TASKS):
            write_task(root / "tasks", f"add{i}")
        (root / "script.json").write_text(json.dumps([f"```bash\n{self.mark}\n```", "```submit```"]))
        code = "from inloop.cli.main import main; main()"
        self.command = [
            sys.executable, "-c", code, "collect", "--engine", "scripted", "--model", str(root / "script.json"),
            "--tasks", str(root / "tasks"), "--k", str(K), "--out", str(self.out), "--concurrency", "4",
        ]  # fmt: skip

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def ledger(self) -> int:
        path = self.out / "trajectories.jsonl"
        return path.read_bytes().count(b"\n") if path.is_file() else 0

    def left_behind(self) -> list[str]:
        """Marked processes anywhere on the machine, a while after the end."""
        wanted = self.mark.replace(" ", "\0").encode()
        found: list[str] = []
        for _ in range(100):
            found = [str(p) for p in Path("/proc").glob("[0-9]*/cmdline") if wanted in _read(p)]
            if not found:
                break
            time.sleep(0.1)
        return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def wait_for(run: Run, process: subprocess.Popen[str], lines: int, seconds: float = 60.0) -> None:
    """Until the ledger has grown so far, or the run is over."""
    until = time.monotonic() + seconds
    while run.ledger() < lines and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_twenty_times(tmp_path: Path) -> None:
    run, rng = Run(tmp_path), random.Random(11)
    killed, held = 0, 0
    for _ in range(KILLS):
        process = run.start()
        wait_for(run, process, held + rng.randrange(4))
        time.sleep(rng.random() * 0.4)
        killed += process.poll() is None
        os.kill(process.pid, signal.SIGKILL) if process.poll() is None else None
        process.communicate()
        assert run.ledger() >= held  # what was written stays
        held = run.ledger()
    assert killed == KILLS and held < TASKS * K
    assert not run.left_behind()

    process = run.start()
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    good, skipped = read_trajectories(run.out)
    ids = [t.id for t in good]
    assert len(ids) == len(set(ids)) == TASKS * K
    assert not [s for s in skipped if s.kind == "duplicate"]
    assert not run.left_behind()
    assert not [lease for lease in leases() if str(run.out) in lease.owner and lease.alive]


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_ends_the_rest(tmp_path: Path) -> None:
    run = Run(tmp_path)
    process = run.start()
    wait_for(run, process, 3)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said and "kept" in said
    assert 3 <= run.ledger() < TASKS * K
    assert json.loads((run.out / "summary.json").read_text())["ended"] == "interrupted"
    assert not run.left_behind()
    assert not [lease for lease in leases() if str(run.out) in lease.owner]
