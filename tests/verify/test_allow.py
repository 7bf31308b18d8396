"""What of an agent's changes is carried over, and why the rest is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from inloop.sandbox.base import Diff
from inloop.tasks.task import Task, VerifySpec
from inloop.verify.allow import matches, narrow, reason


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "environment" / "workspace").mkdir(parents=True)
    (tmp_path / "environment" / "workspace" / "queue.py").write_text("ours")
    spec = VerifySpec(allow=("**/*.py", "data/*.json", "pyproject.toml"), python_path=(".", "src"))
    return Task(id="t", root=tmp_path, instruction="", verify=spec)


@pytest.mark.parametrize(
    "path", ["a.py", "pkg/sub/b.py", "data/x.json", "pyproject.toml", "queue.py", "pkg/json.py", "src/p/re.py"]
)
def test_carried(task: Task, path: str) -> None:
    assert reason(path, task) == ""


@pytest.mark.parametrize(
    "path, why",
    [
        ("conftest.py", "steers"), ("pkg/conftest.py", "steers"), ("sitecustomize.py", "steers"), ("x.pth", "steers"),
        ("pytest.ini", "steers"), ("tox.ini", "steers"), ("setup.cfg", "steers"), ("sub/pyproject.toml", "steers"),
        ("pkg/_fast.so", "steers"), ("a.pyc", "steers"), ("p.dist-info/entry_points.txt", "steers"),
        ("tests/test_a.py", "task's own"), ("tests/helper.py", "task's own"),
        ("json.py", "takes the name"), ("src/pytest.py", "takes the name"), ("_pytest/python.py", "takes the name"),
        ("data/x.csv", "outside"), ("data/deep/x.json", "outside"), ("README.md", "outside"),
        ("../a.py", "not a path"), ("/etc/a.py", "not a path"), ("a/../../b.py", "not a path"),
    ],
)  # fmt: skip
def test_dropped(task: Task, path: str, why: str) -> None:
    assert why in reason(path, task)


def test_every_drop_is_told(task: Task) -> None:
    diff = Diff(
        changed={"a.py": b"1", "conftest.py": b"2"}, deleted=("b.py", "x.md"), rejected=(("l", "symbolic link"),)
    )
    found = narrow(diff, task)
    assert dict(found.changed) == {"a.py": b"1"} and found.deleted == ("b.py",)
    assert [p for p, _ in found.rejected] == ["l", "conftest.py", "x.md"]


@pytest.mark.parametrize(
    "path, pattern, yes",
    [
        ("a.py", "**/*.py", True), ("x/y/a.py", "**/*.py", True), ("a.pyc", "**/*.py", False),
        ("a/b.py", "*.py", False),
        ("pkg/a/b.txt", "pkg/**", True), ("pkga/b", "pkg/**", False), ("a+b.py", "a+?.py", True),
        ("x\n.py", "*.py", True),
    ],
)  # fmt: skip
def test_globs(path: str, pattern: str, yes: bool) -> None:
    assert matches(path, pattern) is yes
