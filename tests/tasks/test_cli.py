"""`inloop tasks` as a person meets it: words, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from inloop import progress
from inloop.cli.tasks_ import app
from inloop.errors import TaskError
from inloop.tasks.folder import load_task, write_task
from inloop.tasks.task import Provenance, Task
from inloop.tasks.taskset import Row, Taskset


@pytest.fixture(autouse=True)
def quiet_again() -> None:
    progress.quiet = False


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(w) for w in words])


def put(root: Path, name: str, unit: str) -> Task:
    origin = Provenance(builder="mutate", repository="lib", unit=unit, kind="operator", licence="MIT")
    task = Task(id=name, root=root / name, instruction=f"Please mend what {name} does wrong.", provenance=origin)
    patch = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    return write_task(task, workspace={"a.py": "x = 1\n"}, tests={}, solution={"patch.diff": patch})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n in range(6):
        put(tmp_path, f"t{n}", f"a.py::f{n // 2}")
    Taskset.scan(tmp_path).save()
    return tmp_path


def test_list_filters_and_json(folder: Path) -> None:
    plain = run("list", folder, "--unit", "*f1")
    assert plain.exit_code == 0 and "t2" in plain.output and "t4" not in plain.output and "2 tasks" in plain.output
    rows = json.loads(run("list", folder, "--limit", 3, "--json").stdout)
    assert [r["id"] for r in rows] == ["t0", "t1", "t2"] and rows[0]["provenance"]["licence"] == "MIT"
    assert json.loads(run("list", folder, "--audited", "--json").stdout) == []


def test_ten_thousand_rows_are_listed(tmp_path: Path) -> None:
    Taskset(tmp_path, [Row(id=f"t{n}", path=f"t{n}", kind="stub") for n in range(10_000)]).save()
    listed = run("list", tmp_path)
    assert listed.exit_code == 0 and listed.output.count("\n") == 10_002 and "10000 tasks" in listed.output


def test_show(folder: Path) -> None:
    shown = run("show", folder, "t3", "--patch")
    assert shown.exit_code == 0
    for words in ("Please mend what t3", "a.py::f1", "lib MIT", "no card", "+x = 2"):
        assert words in shown.output
    assert json.loads(run("show", folder / "t3", "--json").stdout)["id"] == "t3"
    with pytest.raises(TaskError, match="no task 't'"):
        CliRunner().invoke(app, ["show", str(folder), "t"], catch_exceptions=False)
    with pytest.raises(TaskError, match="holds 6 tasks"):
        CliRunner().invoke(app, ["show", str(folder)], catch_exceptions=False)


def test_split_stats_and_index(folder: Path) -> None:
    done = run("split", folder, "--shares", "train=0.6,test=0.4", "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["splits"] == {"train": 4, "test": 2}
    assert load_task(folder / "t0").split == load_task(folder / "t1").split
    found = json.loads(run("stats", folder, "--json").stdout)
    assert found["tasks"] == 6 and found["units"] == 3 and found["kinds"] == {"operator": 6}
    assert found["sizes"]["patch_lines"]["median"] == 2 and found["difficulty"] == {"measured": 0}
    plain = run("stats", folder)
    assert "6 operator" in plain.output and "words" in plain.output and "difficulty" in plain.output
    (folder / "tasks.jsonl").unlink()
    assert run("index", folder).exit_code == 0 and len(Taskset.open(folder).rows) == 6
    with pytest.raises(TaskError, match="can't split by 'x'"):
        CliRunner().invoke(app, ["split", str(folder), "--by", "x"], catch_exceptions=False)


def test_overlap_names_and_blocks(folder: Path) -> None:
    run("split", folder, "--shares", "train=0.6,test=0.4")
    evaluation = folder / "eval.jsonl"
    evaluation.write_text(json.dumps({"task_id": "e1", "prompt": "Please mend what t0 does wrong."}) + "\n")
    found = run("overlap", folder, "--against", evaluation, "--json")
    assert found.exit_code == 1 and "t0" in json.loads(found.stdout)["blocked"]
    assert run("overlap", folder, "--against", evaluation, "--block").exit_code == 0
    assert load_task(folder / "t0").split == "blocked"


def test_check_counts_reasons_and_exits_with_one(folder: Path) -> None:
    done = run("check", folder, "--json")
    report = json.loads(done.stdout)
    assert done.exit_code == 1 and report["ceiling"] == 0.0 and report["tasks"] == 6
    assert sum(report["reasons"].values()) == 6 and all("no hidden tests" in why for why in report["failed"].values())


def test_build_is_found_and_says_what_is_wrong(tmp_path: Path) -> None:
    assert {"mutate", "stub", "commits", "import", "starter"} <= set(run("build", "--help").output.split())
    with pytest.raises(TaskError, match="no such folder"):
        command = ["build", "mutate", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]
        CliRunner().invoke(app, command, catch_exceptions=False)
