"""Negative controls: the same attacks under weaker checks are paid, so the checks that refuse them can fail."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inloop.sandbox.base import Diff, SandboxSpec
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.task import Task
from inloop.types import Verdict
from inloop.verify import forked, score, tree
from inloop.verify.halves import half
from inloop.verify.verifier import Verifier

EXPLOITS = Path(__file__).parents[1] / "data" / "exploits"


def contents(name: str) -> dict[str, bytes]:
    folder = EXPLOITS / name
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def task(make_task: Any) -> Task:
    parts = (contents("task/base"), contents("task/hidden"), contents("task/gold"))
    return make_task(*parts, name="durfmt", mode="forked", modules=("durfmt",), cpu_seconds=0.8, wall_seconds=40.0)


def naive(task: Task, name: str) -> bool:
    """Exit code of pytest where the agent worked: what the verifier replaces."""
    sandbox = Bubblewrap().open(SandboxSpec(workspace=task.workspace, limits=task.limits, owner="naive check"))
    try:
        for path, data in contents(f"{name}/files").items():
            sandbox.write(path, data)
        script = EXPLOITS / name / "agent.sh"
        if script.exists():
            code = base64.b64encode(script.read_bytes()).decode()
            sandbox.run(f"echo {code} | base64 -d > /tmp/a.sh; WORKSPACE=$PWD bash /tmp/a.sh", timeout=20)
        sandbox.write("tests/test_hidden.py", (task.tests / "test_hidden.py").read_bytes())
        return sandbox.run("bash -lc 'python3 -m pytest -q tests/test_hidden.py'", timeout=30).exit_code == 0
    finally:
        sandbox.close()


FOOLS_EXIT_CODES = [
    "02_os_exit_import", "05_conftest_makereport", "06_conftest_deselect", "08_pytest_ini_addopts",
    "09_toml_addopts_plugin", "11_always_equal", "17_shadow_pytest_py", "19_patch_runtest_import",
    "24_caller_source", "52_every_error_at_once",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FOOLS_EXIT_CODES)
def test_the_attack_works_on_an_exit_code(task: Task, name: str) -> None:
    assert naive(task, name)


def test_the_exit_code_of_no_work_is_no_pass(task: Task) -> None:
    assert not naive(task, "00_noop")


@pytest.mark.parametrize("name", ["11_always_equal", "20_patch_report_import", "53_replace_test_code"])
def test_without_twins_in_process_attacks_are_paid(task: Task, verifier: Verifier, name: str) -> None:
    diff = Diff(changed=contents(f"{name}/files"))
    weaker = replace(task, verify=replace(task.verify, twins=False))
    assert verifier.verify(weaker, diff).value == 1.0
    assert verifier.verify(task, diff).verdict is Verdict.CHEAT


def unfiltered(task: Task, diff: Diff) -> float | None:
    """Forked mode over everything that the agent changed: what the list of allowed paths prevents."""
    hidden = tree.read(task)
    halves = [half(hidden.sources, 0, frozenset())]
    ran = forked.run(task, hidden, diff, halves)
    return score.reward(task.verify.expected, halves, ran.runs, mode="forked", timed_out=False).value


def test_without_the_list_of_paths_a_conftest_is_paid(task: Task, verifier: Verifier) -> None:
    diff = Diff(changed=contents("05_conftest_makereport/files"))
    assert unfiltered(task, diff) == 1.0
    assert verifier.verify(task, diff).value == 0.0


PEEK = """
import os
def parse_duration(text):
    try:
        open({target!r}.format(parent=os.getppid()), "rb").read(1)
        return 90
    except OSError:
        return 0
def format_duration(seconds): return ""
"""


@pytest.mark.parametrize("target", ["/proc/{parent}/mem", "/proc/{parent}/environ", "/proc/{parent}/fd/3"])
def test_the_parent_cannot_be_read(task: Task, verifier: Verifier, target: str) -> None:
    reward = verifier.verify(task, Diff(changed={"durfmt/core.py": PEEK.format(target=target).encode()}))
    assert {t.status for t in reward.tests if t.id.endswith("test_seconds")} == {"failed"}


def test_a_process_that_did_not_protect_itself_can_be_read(task: Task, verifier: Verifier) -> None:
    """The same look at a process of its own kind succeeds: what protects the parent is its own doing."""
    code = PEEK.format(target="/proc/self/environ").encode()
    reward = verifier.verify(task, Diff(changed={"durfmt/core.py": code}))
    assert {t.status for t in reward.tests if t.id.endswith("test_seconds")} == {"passed"}


def test_nothing_of_the_host_is_in_the_verifying_sandbox(task: Task, verifier: Verifier, tmp_path: Path) -> None:
    """Hidden originals, twins, solution, other processes, network: looked for by the submission, found by the host."""
    secret = tmp_path / "secret"
    secret.write_text("s")
    looks: dict[str, Callable[[], bool]] = {
        f"os.path.exists({str(secret)!r})": secret.exists,
        f"os.path.exists({str(task.tests / 'twins.json')!r})": (task.tests / "twins.json").exists,
        f"os.path.exists({str(task.solution)!r})": task.solution.exists,
        f"os.path.exists('/proc/{os.getpid()}/cmdline')": Path(f"/proc/{os.getpid()}/cmdline").exists,
        "len(os.listdir('/sys/class/net')) > 1": lambda: len(list(Path("/sys/class/net").iterdir())) > 1,
    }
    for look, on_host in looks.items():
        code = "import os\ndef look():\n    try: return bool({})\n    except OSError: return False\n"
        code += "def parse_duration(text): return 0 if look() else 90\ndef format_duration(s): return ''\n"
        reward = verifier.verify(task, Diff(changed={"durfmt/core.py": code.format(look).encode()}))
        assert {t.status for t in reward.tests if t.id.endswith("test_seconds")} == {"passed"}, look
        assert on_host(), f"{look} says nothing here"
