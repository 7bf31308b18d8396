"""`inloop sandbox` as a person calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def inloop(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from inloop.cli.main import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True)


def test_probe_list_clean(box: Any) -> None:
    probe = inloop("sandbox", "probe", "--json")
    assert probe.returncode == 0, probe.stderr
    assert json.loads(probe.stdout)["backend"] == "bubblewrap"
    listed = json.loads(inloop("sandbox", "list", "--json").stdout)
    mine = next(one for one in listed if one["id"] == box.id)
    assert mine["owner"] == "test" and mine["alive"]
    assert box.id in inloop("sandbox", "list").stdout
    cleaned = inloop("sandbox", "clean", "--json")
    assert cleaned.returncode == 0 and box.id not in json.loads(cleaned.stdout)["leases"]
    assert box.run("echo still here").stdout == "still here\n"


def test_what_can_not_be_is_told() -> None:
    run = inloop("sandbox", "probe", "--backend", "chroot")
    assert run.returncode == 2 and "unisolated-process" in run.stderr and "Traceback" not in run.stderr
    weak = json.loads(inloop("sandbox", "probe", "--backend", "unisolated-process", "--json").stdout)
    assert weak["level"] == "none" and weak["notes"]
