"""Decontamination: overlaps are found by n-grams, counted and blocked; what merely looks alike is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from inloop.errors import TaskError
from inloop.tasks.folder import load_task, write_task
from inloop.tasks.overlap import Document, decontaminate, documents, evaluation_documents, find_overlaps, grams
from inloop.tasks.splits import BLOCKED, assign, check_disjoint
from inloop.tasks.task import Provenance, Task
from inloop.tasks.taskset import Taskset

BODY = """\
def {name}(rows, limit):
    kept = []
    for index, row in enumerate(rows):
        if row.weight > limit and index % 2 == 0:
            kept.append((index, row.weight - limit))
        elif row.weight == limit:
            kept.append((index, 0))
    return sorted(kept, key=lambda pair: (-pair[1], pair[0]))
"""
OTHER = """\
def {name}(text, width):
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) + 1 > width:
            lines.append(line)
            line = word
        else:
            line = f"{{line}} {{word}}".strip()
    return [*lines, line]
"""


def put(root: Path, name: str, body: str, split: str, instruction: str = "") -> Task:
    right = body.format(name=name)
    wrong = right.replace("    return", "    return None or", 1)
    index = wrong.splitlines().index(next(x for x in wrong.splitlines() if "None or" in x))
    old, new = wrong.splitlines()[index], right.splitlines()[index]
    context = wrong.splitlines()[index - 1]
    patch = f"--- a/{name}.py\n+++ b/{name}.py\n@@ -{index},2 +{index},2 @@\n {context}\n-{old}\n+{new}\n"
    task = Task(
        id=name,
        root=root / name,
        instruction=instruction or f"Please mend {name}, it gives nothing at all when it is asked for {name}.",
        provenance=Provenance(builder="hand", repository=name, unit=f"{name}.py::{name}"),
        split=split,
    )
    shared = "def helper():\n    " + "\n    ".join(f"x{i} = {i} * {i + 1} + len('abc')" for i in range(40)) + "\n"
    files = {f"{name}.py": wrong, "helpers.py": shared}
    return write_task(task, workspace=files, tests={}, solution={"patch.diff": patch})


def test_copies_are_found_whatever_their_name(tmp_path: Path) -> None:
    tasks = [
        put(tmp_path, "alpha", BODY, "train"),
        put(tmp_path, "beta", BODY, "test"),
        put(tmp_path, "gamma", OTHER, "train"),
    ]
    found = decontaminate(tasks)
    assert set(found.blocked) == {"alpha"} and "overlaps with beta of test (alpha.py" in found.blocked["alpha"]
    assert found.counts == {"overlap with the test split": 1}


def test_workspaces_are_compared_whole_when_asked(tmp_path: Path) -> None:
    tasks = [put(tmp_path, "alpha", BODY, "train"), put(tmp_path, "gamma", OTHER, "test")]
    assert decontaminate(tasks).blocked == {}
    assert "helpers.py" in decontaminate(tasks, scope="workspace").blocked["alpha"]


def test_the_same_instruction_is_an_overlap(tmp_path: Path) -> None:
    words = " ".join(f"word{i}" for i in range(60))
    tasks = [
        put(tmp_path, "alpha", BODY, "train", words),
        put(tmp_path, "gamma", OTHER, "test", f"Oh: {words} and more"),
    ]
    assert "instruction" in decontaminate(tasks).blocked["alpha"]


def test_a_piece_in_a_much_longer_text_is_found() -> None:
    piece = " ".join(f"w{i}" for i in range(60))
    long = " ".join(f"v{i}" for i in range(4000))
    left = [Document("a", "x", grams(piece))]
    right = [Document("b", "y", grams(f"{long} {piece} {long}")), Document("c", "y", grams(long))]
    assert [(o.right, o.share) for o in find_overlaps(left, right)] == [("b", 1.0)]
    assert [(o.left, o.share) for o in find_overlaps(right, left)] == [("b", 1.0)]
    assert find_overlaps(left, []) == [] and find_overlaps([], right) == []


def test_half_an_overlap_is_below_the_threshold_and_exact() -> None:
    words = [f"w{i}" for i in range(200)]
    half = Document("b", "y", grams(" ".join(words[:100] + [f"u{i}" for i in range(100)])))
    assert find_overlaps([Document("a", "x", grams(" ".join(words)))], [half]) == []
    (found,) = find_overlaps([Document("a", "x", grams(" ".join(words)))], [half], threshold=0.4)
    assert found.share == pytest.approx(93 / 193, abs=0.001)


def test_evaluation_sets(tmp_path: Path) -> None:
    tasks = [put(tmp_path / "set", "alpha", BODY, "train"), put(tmp_path / "set", "gamma", OTHER, "train")]
    rows = [
        {
            "task_id": "eval/1",
            "prompt": "Something else entirely that nobody has",
            "canonical_solution": BODY.format(name="alpha"),
        },
        {"instance_id": "eval-2", "problem_statement": "and this one is about other things"},
    ]
    path = tmp_path / "eval.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    found = decontaminate(tasks, evaluation_documents(path))
    assert set(found.blocked) == {"alpha"} and "evaluation row eval/1" in found.blocked["alpha"]
    other = put(tmp_path / "other", "omega", OTHER, "")
    assert "omega" in decontaminate(tasks, evaluation_documents(other.root.parent)).blocked["gamma"]
    path.write_text('{"x": 1}\n')
    with pytest.raises(TaskError, match="no text that can be compared"):
        evaluation_documents(path)
    path.write_text("{\n")
    with pytest.raises(TaskError, match=r"eval\.jsonl:1: not JSON"):
        evaluation_documents(path)
    with pytest.raises(TaskError, match="no such file"):
        evaluation_documents(tmp_path / "nothing.jsonl")


def test_blocked_tasks_are_in_no_split(tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma"):
        put(tmp_path, name, BODY, "")
    tasks = Taskset.scan(tmp_path)
    shared = [replace(r, provenance={**r.provenance, "repository": "r", "unit": "u"}) for r in tasks.rows]
    shared[0] = replace(shared[0], split=BLOCKED)
    given = assign(shared, {"train": 1.0})
    assert set(given) == {"beta", "gamma"}
    assert check_disjoint([replace(r, split=given.get(r.id, r.split)) for r in shared])[BLOCKED] == 1
    assert load_task(tmp_path / "alpha").split == ""


def test_documents_of_a_task_hold_the_function_under_repair_alone(tmp_path: Path) -> None:
    task = put(tmp_path, "alpha", BODY, "train")
    unit = {d.part: d for d in documents(task, "unit")}
    assert set(unit) == {"instruction", "alpha.py"}
    assert unit["alpha.py"].grams == grams((task.workspace / "alpha.py").read_text())
    assert {d.part for d in documents(task, "workspace")} == {"instruction", "alpha.py", "helpers.py"}
