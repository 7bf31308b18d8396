"""The index, its filters, splits by unit, and the card that training asks for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from inloop.errors import TaskError
from inloop.tasks.cards import require_cards
from inloop.tasks.folder import write_task
from inloop.tasks.splits import assign, check_disjoint, group_of, parse_shares
from inloop.tasks.task import Card, Provenance, Task
from inloop.tasks.taskset import Filter, Row, Taskset


def put(root: Path, name: str, *, unit: str = "a.py::f", kind: str = "operator", **changes: object) -> Task:
    origin = Provenance(builder="mutate", repository="lib", unit=unit, kind=kind)
    task = Task(id=name, root=root / name, instruction=f"mend {name}", provenance=origin)
    return write_task(
        replace(task, **changes),  # type: ignore[arg-type]
        workspace={"a.py": "def f(): return 1\n"},
        tests={"test_a.py": "def test_f(): pass\n"},
        solution={"patch.diff": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"},
    )


def rows(n: int, units: int, split: str = "") -> list[Row]:
    return [
        Row(id=f"t{i}", path=f"t{i}", split=split, kind=("stub", "operator")[i % 2], difficulty=i / n,
            provenance={"builder": "mutate", "repository": "lib", "unit": f"m{i % 7}.py::f{i % units}"})
        for i in range(n)
    ]  # fmt: skip


def test_index_round_trip_and_filters(tmp_path: Path) -> None:
    for i in range(4):
        put(tmp_path, f"t{i}", kind="stub" if i % 2 else "operator", unit=f"a.py::f{i}", difficulty=i / 4)
    scanned = Taskset.scan(tmp_path)
    scanned.save()
    opened = Taskset.open(tmp_path)
    assert opened.rows == scanned.rows and [r.id for r in opened.rows] == ["t0", "t1", "t2", "t3"]
    assert opened.rows[0].size["patch_lines"] == 2 and opened.rows[0].size["files"] == 1
    assert [r.id for r in opened.rows if Filter(kind="stub", min_difficulty=0.5)(r)] == ["t3"]
    assert [r.id for r in opened.rows if Filter(unit="*::f[01]", audited=False)(r)] == ["t0", "t1"]
    assert opened.task("t2").provenance.unit == "a.py::f2"
    with pytest.raises(TaskError, match="no task 't9'"):
        opened.task("t9")


def test_a_task_folder_is_a_set_of_one_and_a_workspace_holds_no_tasks(tmp_path: Path) -> None:
    task = put(tmp_path, "one")
    (task.workspace / "task.toml").write_text("[x]\n")
    assert [r.id for r in Taskset.open(task.root).rows] == ["one"]
    assert [r.id for r in Taskset.open(tmp_path).rows] == ["one"]


def test_ten_thousand_rows_list_and_filter(tmp_path: Path) -> None:
    Taskset(tmp_path, rows(10_000, 500)).save()
    opened = Taskset.open(tmp_path)
    assert len(opened.rows) == 10_000
    assert sum(map(Filter(kind="stub", id="t1*", max_difficulty=0.5), opened.rows)) == 555


def test_index_mistakes_name_the_line(tmp_path: Path) -> None:
    index = tmp_path / "tasks.jsonl"
    index.write_text('{"id":"a","path":"a"}\n{"id":"b"}\n')
    with pytest.raises(TaskError, match=rf"{index}:2: not a task row"):
        Taskset.open(tmp_path)
    index.write_text('{"id":"a","path":"a"}\n{"id":"b",\n')
    with pytest.raises(TaskError, match=rf"{index}:2: not JSON"):
        Taskset.open(tmp_path)
    index.write_text('{"id":"a","path":"a"}\n{"id":"a","path":"b"}\n')
    with pytest.raises(TaskError, match="there twice"):
        Taskset.open(tmp_path)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(TaskError, match="neither"):
        Taskset.open(tmp_path / "nothing")


@pytest.mark.parametrize("by", ["function", "file"])
def test_splits_are_disjoint_whole_and_deterministic(by: str) -> None:
    table = rows(700, 60)
    split = assign(table, {"train": 0.7, "val": 0.1, "test": 0.2}, by=by, seed=3)  # type: ignore[arg-type]
    placed = [replace(r, split=split[r.id]) for r in table]
    counts = check_disjoint(placed, by)  # type: ignore[arg-type]
    assert set(counts) == {"train", "val", "test"} and sum(counts.values()) == 700
    assert counts["train"] > counts["test"]
    again = assign(table[::-1], {"train": 0.7, "val": 0.1, "test": 0.2}, by=by, seed=3)  # type: ignore[arg-type]
    assert again == split
    assert assign(table, {"train": 0.7, "val": 0.1, "test": 0.2}, by=by, seed=4) != split  # type: ignore[arg-type]


def test_new_tasks_never_move_a_unit() -> None:
    first = assign(rows(100, 30), {"train": 0.5, "test": 0.5})
    grown = [replace(r, split=first.get(r.id, "")) for r in rows(400, 50)]
    second = assign(grown, {"train": 0.5, "test": 0.5})
    by_unit = {group_of(r, "function"): first[r.id] for r in grown if r.id in first}
    assert all(second[r.id] == by_unit.get(group_of(r, "function"), second[r.id]) for r in grown)


def test_every_split_gets_a_unit() -> None:
    table = [replace(r, provenance={**r.provenance, "unit": f"u{i // 5}"}) for i, r in enumerate(rows(10, 2))]
    assert set(assign(table, {"train": 0.9, "test": 0.1}).values()) == {"train", "test"}
    with pytest.raises(TaskError, match="can't fill 3 splits"):
        assign(table, {"train": 0.8, "val": 0.1, "test": 0.1})


def test_a_unit_in_two_splits_is_refused() -> None:
    table = [replace(r, split=("train", "test")[i % 2]) for i, r in enumerate(rows(10, 1))]
    same = [replace(r, provenance={**r.provenance, "unit": "a.py::f"}) for r in table]
    with pytest.raises(TaskError, match=r"1 source units are in more than one split.*a\.py::f"):
        check_disjoint(same)
    with pytest.raises(TaskError, match="already in"):
        assign(same, {"train": 1.0})


@pytest.mark.parametrize("text", ["train", "train=x", "train=0.5,test=0.6", "train=-1,test=2", ""])
def test_bad_shares(text: str) -> None:
    with pytest.raises(TaskError):
        parse_shares(text)


def test_assign_writes_folders_and_index(tmp_path: Path) -> None:
    for i in range(4):
        put(tmp_path, f"t{i}", unit=f"a.py::f{i}")
    tasks = Taskset.scan(tmp_path)
    tasks.assign({"t0": "train", "t1": "train", "t2": "test", "t3": "train"})
    assert [r.split for r in Taskset.open(tmp_path).rows] == ["train", "train", "test", "train"]
    assert Taskset.scan(tmp_path).rows == Taskset.open(tmp_path).rows
    assert json.loads((tmp_path / "tasks.jsonl").read_text().splitlines()[2])["split"] == "test"


def test_training_refuses_what_has_no_valid_card(tmp_path: Path) -> None:
    bare, carded = put(tmp_path, "bare"), put(tmp_path, "carded")
    carded = replace(carded, card=Card(content=carded.content_hash(), ok=True))
    assert require_cards([carded]) == [carded]
    with pytest.raises(TaskError, match=r"1 of 2 tasks have no valid audit card \(1 no card\), such as bare") as error:
        require_cards([bare, carded])
    assert "--allow-unaudited-tasks" in str(error.value)
    assert require_cards([bare], allow_unaudited=True) == [bare]
    (carded.workspace / "a.py").write_text("def f(): return 2\n")
    with pytest.raises(TaskError, match="changed since its audit"):
        require_cards([carded])
