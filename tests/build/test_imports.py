"""Rows that others made become tasks, or a counted reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inloop.build.imports import import_tasks
from inloop.build.patch import make_patch
from inloop.errors import TaskError
from inloop.tasks.folder import load_task
from inloop.tasks.taskset import Taskset

pytestmark = pytest.mark.slow

HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": "from typing import List\n\n\ndef total(xs: List[int]) -> int:\n"
    '    """ Sum.\n    >>> total([1])\n    1\n    """\n',
    "entry_point": "total",
    "canonical_solution": "    return sum(xs)\n",
    "test": "METADATA = {}\n\n\ndef check(candidate):\n    base = [1, 2]\n    assert candidate(base) == 3\n"
    "    assert candidate([]) == 0\n    assert candidate([-1, 1]) == 0, 'zero'\n    assert True\n",
}
MBPP = {
    "task_id": 11,
    "text": "Write a function to remove the first and last occurrence of a letter.",
    "code": "import re\r\ndef strip_ends(s, ch):\r\n    a = s.find(ch)\r\n"
    "    s = s[:a] + s[a + 1:] if a >= 0 else s\r\n"
    "    b = s.rfind(ch)\r\n    return s[:b] + s[b + 1:] if b >= 0 else s",
    "test_list": ['assert strip_ends("hello","l") == "heo"', 'assert strip_ends("abcda","a") == "bcd"',
                  'assert strip_ends("PHP","P") == "H"'],
    "test_setup_code": "",
    "challenge_test_list": ['assert strip_ends("x","y") == "x"'],
}  # fmt: skip


def rows(path: Path, *items: Any) -> Path:
    path.write_text("".join(f"{item if isinstance(item, str) else json.dumps(item)}\n" for item in items))
    return path


def test_function_level_rows(tmp_path: Path) -> None:
    source = rows(tmp_path / "set.jsonl", HUMANEVAL, MBPP)
    report = import_tasks(source, tmp_path / "out")
    assert report.kept == ["humaneval-0", "mbpp-11"] and not report.drops
    first, second = Taskset.open(tmp_path / "out").tasks()
    assert first.is_audited and second.is_audited and first.verify.mode == "split"
    assert len(first.verify.expected) == 3 and "NotImplementedError" in (first.workspace / "solution.py").read_text()
    assert 'strip_ends("hello","l")' in second.instruction and len(second.verify.expected) == 3
    assert 'strip_ends("hello","l")' not in (second.tests / "test_solution.py").read_text()


def test_rows_that_can_not_be_tasks_are_counted(tmp_path: Path) -> None:
    source = rows(
        tmp_path / "set.jsonl",
        {**HUMANEVAL, "test": "def other(): pass"},
        {**HUMANEVAL, "task_id": "HumanEval/1", "canonical_solution": "    return (\n"},
        {**HUMANEVAL, "task_id": "HumanEval/2", "canonical_solution": "    return 7\n"},
        {**MBPP, "test_list": ["assert other(1) == 2"], "challenge_test_list": []},
        {"instance_id": "a__b-1", "repo": "a/b", "patch": "x"},
        {"instance_id": "a__b-2", "repo": "a/b", "patch": "x", "FAIL_TO_PASS": '["t.py::test_a"]'},
        {"instance_id": "a__b-3", "patch": "x", "FAIL_TO_PASS": ["t.py::t"], "problem_statement": "It fails."},
        {"some": "thing"},
        "{not json",
        "[1]",
    )
    report = import_tasks(source, tmp_path / "out")
    assert report.kept == [] and sum(report.drops.values()) == 10
    said = " | ".join(report.drops)
    for reason in (
        "no check(candidate)", "the solution does not parse", "the oracle fails", "no function of the solution",
        "names no FAIL_TO_PASS", "no problem statement", "names no docker image", "of no known shape", "not JSON",
        "not a JSON object",
    ):  # fmt: skip
        assert reason in said
    assert [p.name for p in (tmp_path / "out").iterdir() if not p.name.startswith(".")] == ["tasks.jsonl"]


@pytest.fixture
def swe(pocket: Path, git: Callable[..., str], tmp_path: Path) -> dict[str, Any]:
    """A SWE-bench-shaped row about the pocket package, and its repository in `repos`."""
    path, test = "pocket/money.py", "tests/test_money.py"
    right, tests = (pocket / path).read_bytes(), (pocket / test).read_bytes()
    wrong = right.replace(b"reverse=True", b"reverse=False")
    before = tests.replace(b"    def test_pay(self)", b"    def later_pay(self)")
    (pocket / path).write_bytes(wrong), (pocket / test).write_bytes(before)
    git(pocket, "init", "-q"), git(pocket, "add", "-A"), git(pocket, "commit", "-qm", "start")
    commit = git(pocket, "rev-parse", "HEAD").strip()
    (tmp_path / "repos").mkdir()
    pocket.rename(tmp_path / "repos/acme__pocket")
    return {
        "instance_id": "acme__pocket-7",
        "repo": "acme/pocket",
        "base_commit": commit,
        "problem_statement": "Purse.pay should take out the largest coins first, but it takes the smallest ones.",
        "patch": make_patch({path: wrong}, {path: right}),
        "test_patch": make_patch({test: before}, {test: tests}),
        "FAIL_TO_PASS": json.dumps([f"{test}::PurseTests::test_pay"]),
        "PASS_TO_PASS": json.dumps([f"{test}::PurseTests::test_total", f"{test}::PurseTests::test_cannot_pay"]),
    }


def test_a_swe_row_from_a_local_clone(swe: dict[str, Any], tmp_path: Path) -> None:
    report = import_tasks(rows(tmp_path / "swe.jsonl", swe), tmp_path / "out", repos=tmp_path / "repos")
    assert report.kept == ["acme__pocket-7"], report.drops
    task = load_task(tmp_path / "out/acme__pocket-7")
    assert task.is_audited and task.instruction.startswith("Purse.pay") and task.provenance.commit == swe["base_commit"]
    assert not (task.workspace / ".git").exists()
    assert "def test_pay(self)" not in (task.workspace / "tests/test_money.py").read_text()


def test_swe_rows_that_need_docker_say_so(swe: dict[str, Any], tmp_path: Path) -> None:
    smith = {k: v for k, v in swe.items() if k not in ("test_patch", "base_commit")}
    smith |= {"instance_id": "acme__pocket.1234.lm_1", "image_name": "jyangballin/swesmith.x86_64.acme:latest"}
    rebench = {**swe, "docker_image": "swerebench/acme:1"}
    odd = {**swe, "instance_id": "odd-1", "docker_image": "x\nRUN evil"}
    report = import_tasks(rows(tmp_path / "swe.jsonl", smith, rebench, odd), tmp_path / "out")
    assert report.skipped == {"needs docker (kept, not audited)": 2} and len(report.kept) == 2
    assert report.drops == {"the name of its docker image is odd": 1}
    tasks = {t.id: t for t in Taskset.open(tmp_path / "out").tasks()}
    assert tasks["acme__pocket-7"].image == "swerebench/acme:1" and "docker" in tasks["acme__pocket-7"].meta["needs"]
    assert "apply -R" in (tasks["acme__pocket.1234.lm_1"].solution / "solve.sh").read_text()
    assert "test.patch" in (tasks["acme__pocket-7"].tests / "test.sh").read_text()


def test_parquet_and_harbor_folders(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist([HUMANEVAL]), tmp_path / "set.parquet")
    report = import_tasks(tmp_path / "set.parquet", tmp_path / "one", audit=False)
    assert report.kept == ["humaneval-0"]
    foreign = tmp_path / "harbor/hello"
    (foreign / "environment").mkdir(parents=True)
    (foreign / "task.toml").write_text('schema_version = "1.4"\n')
    (foreign / "instruction.md").write_text("Write hello.txt\n")
    (foreign / "environment/Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "harbor/broken").mkdir()
    (tmp_path / "harbor/broken/task.toml").write_text("x = \n")
    report = import_tasks(tmp_path / "harbor", tmp_path / "two")
    assert report.kept == ["hello"] and report.skipped == {"needs docker (kept, not audited)": 1}
    assert any("not a usable Harbor folder" in why for why in report.drops)
    again = import_tasks(tmp_path / "one", tmp_path / "three")
    assert again.kept == ["humaneval-0"] and Taskset.open(tmp_path / "three").rows[0].audited


def test_files_that_are_none(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.jsonl", tmp_path):
        with pytest.raises(TaskError):
            import_tasks(path, tmp_path / "out")
    (tmp_path / "bad.parquet").write_bytes(b"PAR0")
    with pytest.raises(TaskError, match="not a parquet file"):
        import_tasks(tmp_path / "bad.parquet", tmp_path / "out")
