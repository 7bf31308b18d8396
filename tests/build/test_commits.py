"""`commits`: a history made here; what comes after the base commit is nowhere in the workspace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inloop.build.commits import build_commits
from inloop.build.git import Repository
from inloop.errors import TaskError
from inloop.tasks.taskset import Taskset

pytestmark = pytest.mark.slow

Git = Callable[..., str]


@pytest.fixture
def history(pocket: Path, git: Git) -> Path:
    """A feature without tests, a fix with tests, a new module with tests, and a last commit that touches no code."""
    money = pocket / "pocket/money.py"
    right = money.read_text()
    git(pocket, "init", "-q")
    money.write_text(right.replace("[share + 1] * rest + [share]", "[share] * rest + [share]"))
    test = pocket / "tests/test_money.py"
    whole = test.read_text()
    whole = whole.replace("class SplitAgain(SplitTests)", "class SplitAgain(unittest.TestCase)")
    test.write_text(whole.replace("    def test_extra_cents_first", "    def later_test_extra_cents_first").replace(
        "    def test_sum_is_kept", "    def later_test_sum_is_kept"))  # fmt: skip
    git(pocket, "add", "-A"), git(pocket, "commit", "-qm", "start")
    (pocket / "pocket/extra.py").write_text("def double(x):\n    return x + x\n")
    git(pocket, "add", "-A"), git(pocket, "commit", "-qm", "no tests")
    money.write_text(right), test.write_text(whole)
    git(pocket, "commit", "-qam", "the fix")
    (pocket / "pocket/half.py").write_text("def halve(x):\n    return x / 2\n")
    (pocket / "tests/test_half.py").write_text(
        "from pocket.half import halve\n\n\ndef test_halve():\n    assert halve(4) == 2\n\n\n"
        "def test_halve_odd():\n    assert halve(3) == 1.5\n"
    )
    git(pocket, "add", "-A"), git(pocket, "commit", "-qm", "a new module")
    (pocket / "README.md").write_text("SECRET-OF-LATER\n")
    git(pocket, "add", "-A"), git(pocket, "commit", "-qm", "words")
    return pocket


def test_mined_audited_and_without_a_future(history: Path, git: Git, tmp_path: Path) -> None:
    report = build_commits(str(history), tmp_path / "out", 5)
    assert report.skipped == {"commit without a change to code": 1, "commit without a change to tests": 1}
    tasks = list(Taskset.open(tmp_path / "out").tasks())
    assert all(t.is_audited for t in tasks) and len(tasks) == 2, report.drops
    shas = git(history, "log", "--format=%H %s").splitlines()
    by_subject = {s.split(" ", 1)[1]: s.split(" ", 1)[0] for s in shas}
    fix = next(t for t in tasks if t.provenance.unit == by_subject["the fix"])
    assert "[share] * rest" in (fix.workspace / "pocket/money.py").read_text()
    assert not (fix.workspace / "pocket/half.py").exists() and not (fix.workspace / "README.md").exists()
    new = next(t for t in tasks if t.provenance.unit == by_subject["a new module"])
    assert not (new.workspace / "pocket/half.py").exists() and "/dev/null" in (new.solution / "patch.diff").read_text()
    for task in tasks:
        assert not (task.workspace / ".git").exists()
        text = b"".join(p.read_bytes() for p in task.workspace.rglob("*") if p.is_file())
        assert b"SECRET-OF-LATER" not in text and task.provenance.unit.encode() not in text


def test_hooks_filters_and_attributes_of_a_repository_do_nothing(pocket: Path, git: Git, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    git(pocket, "init", "-q")
    (pocket / ".gitattributes").write_text("*.py filter=evil export-subst\ntests export-ignore\n")
    git(pocket, "add", "-A"), git(pocket, "commit", "-qm", "start")
    for name in ("post-checkout", "post-merge", "reference-transaction"):
        hook = pocket / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    git(pocket, "config", "filter.evil.smudge", f"touch {mark}")
    git(pocket, "config", "core.fsmonitor", f"touch {mark}")
    with Repository.open(str(pocket)) as repository:
        files, _ = repository.files(repository.head())
    assert "tests/test_money.py" in files and not mark.exists()


def test_a_history_with_nothing_in_it(pocket: Path, git: Git, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no git repository"):
        build_commits(str(pocket), tmp_path / "out", 1)
    git(pocket, "init", "-q")
    with pytest.raises(TaskError, match="no commit"):
        build_commits(str(pocket), tmp_path / "out", 1)
    git(pocket, "add", "-A"), git(pocket, "commit", "-qm", "start")
    with pytest.raises(TaskError, match="changes both code and tests"):
        build_commits(str(pocket), tmp_path / "out", 1)
