"""Leases, and a janitor that leaves nothing of a dead owner."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inloop.errors import SandboxFault
from inloop.sandbox import lease

checks = sys.modules["sandbox_checks"]
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture
def run_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run folder of our own, so that no other process's janitor comes first."""
    folder = Path(tempfile.mkdtemp(prefix="inloop-run-"))
    folder.chmod(0o711)
    monkeypatch.setenv("INLOOP_RUN_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def owner(run_folder: Path) -> Iterator[dict[str, Any]]:
    folder = checks.workspace()
    process = subprocess.Popen(
        [sys.executable, str(HERE / "owner.py"), str(ROOT / "src"), str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    told["process"] = process
    yield told
    process.kill()
    process.wait()
    process.stdout.close()
    shutil.rmtree(folder)


def remains(told: dict[str, Any]) -> list[str]:
    left = [f"process {n}" for n in ("slot", "pid", "keeper") if lease.process_key(told[n])]
    left += [g for g in told["groups"] if Path(g).exists()]
    left += [told["folder"]] if Path(told["folder"]).exists() else []
    if os.geteuid() == 0:
        left += [f"process {p}" for p in _pids() if _uid(p) == told["uid"]]
    left += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "inloop-run-" in line]
    return left


def _pids() -> list[int]:
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]


def _uid(pid: int) -> int:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return -1


def _soon_nothing(told: dict[str, Any]) -> list[str]:
    for _ in range(200):
        if not remains(told):
            break
        time.sleep(0.05)
    return remains(told)


def test_a_killed_owner_leaves_nothing(owner: dict[str, Any]) -> None:
    found = lease.leases()
    assert [(one.owner, one.alive) for one in found] == [("to be killed", True)]
    assert remains(owner), "the control: while it lives there is something to find"
    assert not lease.clean().leases, "a live owner's lease is not touched"
    owner["process"].kill()
    owner["process"].wait()
    lease.clean()
    assert _soon_nothing(owner) == []


def test_nor_when_the_keeper_is_killed_with_it(owner: dict[str, Any]) -> None:
    os.kill(owner["keeper"], signal.SIGSTOP)
    os.kill(owner["slot"], signal.SIGSTOP)
    owner["process"].kill()
    owner["process"].wait()
    assert Path(owner["folder"]).exists() and not lease.leases()[0].alive
    done = lease.clean()
    os.kill(owner["keeper"], signal.SIGKILL)
    assert len(done.leases) == 1 and done.processes and not done.left
    assert set(done.groups) == set(owner["groups"])
    assert _soon_nothing(owner) == []
    assert lease.leases() == []


def test_an_owner_that_ends_by_itself_leaves_nothing(run_folder: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from inloop.sandbox.base import SandboxSpec\n"
        "from inloop.sandbox.bubblewrap import Bubblewrap\n"
        "box = Bubblewrap().open(SandboxSpec(workspace=Path(sys.argv[2])))\n"
        "print(box.run('echo hi').stdout, end='')\n"
    )
    folder = checks.workspace()
    run = subprocess.run([sys.executable, "-c", code, str(ROOT / "src"), str(folder)], capture_output=True, text=True)
    shutil.rmtree(folder)
    assert (run.stdout, run.stderr) == ("hi\n", "")
    for _ in range(100):
        if not lease.leases():
            break
        time.sleep(0.05)
    assert lease.leases() == []


def test_a_killed_sandbox_process_is_survived(box: Any) -> None:
    """The kernel, or a person, kills bubblewrap: the next command finds a restarted sandbox."""
    box.run("export KEPT=1; echo x > f")
    os.kill(box._launched.pid, signal.SIGKILL)
    while "restarted" not in box.run("sleep 0.05").stderr:
        pass
    assert box.run("cat f; echo $KEPT").stdout == "x\n1\n"


def test_a_dead_keeper_is_a_fault(run_folder: Path) -> None:
    code = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from inloop.errors import SandboxFault\n"
        "from inloop.sandbox.base import SandboxSpec\n"
        "from inloop.sandbox.bubblewrap import Bubblewrap\n"
        "box = Bubblewrap().open(SandboxSpec(workspace=Path(sys.argv[2])))\n"
        "os.kill(box._launched.slot.pid, signal.SIGKILL)\n"
        "try:\n"
        "    for _ in range(200): box.run('sleep 0.05')\n"
        "except SandboxFault as fault: print('fault')\n"
        "box.close()\n"
    )
    folder = checks.workspace()
    run = subprocess.run([sys.executable, "-c", code, str(ROOT / "src"), str(folder)], capture_output=True, text=True)
    shutil.rmtree(folder)
    assert run.stdout == "fault\n", run.stderr


def test_process_keys_tell_one_process_from_a_later_one() -> None:
    own = lease.process_key(os.getpid())
    assert lease.is_alive(own)
    assert not lease.is_alive(f"{os.getpid()}-1") and not lease.is_alive("") and not lease.is_alive("999999999-1")


def test_a_half_written_lease_is_no_lease(run_folder: Path) -> None:
    lease.take("mine")
    (run_folder / "leases" / "abc").mkdir()
    (run_folder / "leases" / "abd").mkdir()
    (run_folder / "leases" / "abd" / "owner.json").write_text('{"id": ')
    assert [one.owner for one in lease.leases()] == ["mine"]


def test_a_run_folder_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("INLOOP_RUN_DIR", str(tmp_path / "link"))
    with pytest.raises(SandboxFault):
        lease.run_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's sandboxes run as that user")
def test_a_run_folder_that_sandboxes_can_not_reach(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run_folder / "shut").mkdir(mode=0o700)
    monkeypatch.setenv("INLOOP_RUN_DIR", str(run_folder / "shut" / "inside"))
    with pytest.raises(SandboxFault, match="can't be reached"):
        lease.run_folder()


def test_a_run_folder_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INLOOP_RUN_DIR", str(tmp_path / "file" / "run"))
    with pytest.raises(SandboxFault, match=r"leases can't be kept in .*Not a directory"):
        lease.run_folder()
