"""The same sandbox for an ordinary user. When the tests run as root, they become one here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inloop.sandbox import profile

checks = sys.modules["sandbox_checks"]
HERE = Path(__file__).parent
SRC = HERE.parents[1] / "src"
SOMEBODY = 64123
BECOME = """
import os, sys
sys.path.insert(0, sys.argv[1])
from inloop.sandbox import syscalls
uid, root, pairs, command = int(sys.argv[2]), sys.argv[3], sys.argv[4].split(os.pathsep), sys.argv[5:]
syscalls.unshare(syscalls.CLONE_NEWNS)
syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
for pair in pairs:
    source, target = pair.split("=")
    os.makedirs(target)
    syscalls.bind(source, target)
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
os.chdir("/")
os.execve(command[0], command, {"PATH": os.environ["PATH"], "HOME": root, "LANG": "C.UTF-8", "TMPDIR": root})
"""
"""Root binds what the user needs where the user can reach it: a home of root hides even the interpreter."""


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Any]]:
    if os.geteuid():
        yield _run([sys.executable, str(HERE / "as_user.py"), str(SRC)])
        return
    root = Path(tempfile.mkdtemp(prefix="inloop-user-"))
    os.chown(root, SOMEBODY, SOMEBODY)
    _, folders = profile.find_bwrap()
    binds = {sys.base_prefix: root / "python", str(SRC): root / "src", str(HERE): root / "tests"}
    binds |= {folder: root / "bwrap" / Path(folder).name for folder in folders}
    python = root / "python" / Path(sys.executable).resolve().relative_to(sys.base_prefix)
    pairs = os.pathsep.join(f"{source}={target}" for source, target in binds.items())
    become = [sys.executable, "-c", BECOME, str(SRC), str(SOMEBODY), str(root), pairs]
    try:
        yield _run([*become, str(python), "-B", str(root / "tests" / "as_user.py"), f"{root / 'src'}:{root / 'bwrap'}"])
    finally:
        shutil.rmtree(root)


def _run(command: list[str]) -> dict[str, Any]:
    run = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.slow
def test_isolation_for_an_ordinary_user(told: dict[str, Any]) -> None:
    assert told["uid"] != 0
    wrong = {name: found for name, found in told["probes"].items() if not found.startswith("SHUT ")}
    assert not wrong
    shown = [name for name, found in told["probes"].items() if found == "SHUT OPEN"]
    assert len(shown) >= 8, f"the controls that show something: {shown}"


@pytest.mark.slow
def test_limits_for_an_ordinary_user(told: dict[str, Any]) -> None:
    expected = {attack.name: attack.limits for attack in checks.ATTACKS}
    assert {name: limit for name, limit in told["attacks"].items() if limit not in expected[name]} == {}


@pytest.mark.slow
def test_the_protocol_for_an_ordinary_user(told: dict[str, Any]) -> None:
    found = told["protocol"]
    assert found["state"] == "12\n/workspace/sub\n"
    assert found["diff"] == "pristine\nmore\n"
    assert found["reset"] == "\n/workspace\na.txt\nsub\n"
    assert found["uid"] == told["uid"]
    assert told["many"] == []
    level, limits = found["isolation"]
    assert level == ("weak" if limits == "rlimits" else "strong")
