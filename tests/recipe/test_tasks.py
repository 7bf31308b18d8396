"""The tasks of a recipe: what traces are made of and what RL draws from."""

from __future__ import annotations

from pathlib import Path

import pytest

from inloop.build.starter.library import entries
from inloop.errors import TaskError
from inloop.recipe.config import Recipe, TasksPart
from inloop.recipe.tasks import make_tasks
from inloop.tasks.taskset import Taskset


def test_rl_gets_functions_that_no_trace_has(tmp_path: Path) -> None:
    part = TasksPart(n=40, test_share=0.2, rl_share=0.25)
    rows = make_tasks(part, tmp_path / "tasks", 3).rows
    units = {split: {r.unit for r in rows if r.split == split} for split in ("train", "rl", "test")}
    assert not units["train"] & units["rl"] and not units["test"] & (units["train"] | units["rl"])
    assert [sum(r.split == split for r in rows) for split in ("train", "rl", "test")] == [24, 8, 8]
    assert all(r.audited for r in rows)
    again = make_tasks(part, tmp_path / "tasks", 3)
    assert [(r.id, r.split) for r in again.rows] == [(r.id, r.split) for r in rows]
    assert {t.split for t in Taskset.open(tmp_path / "tasks").tasks()} == {"train", "rl", "test"}


def test_only_short_functions_are_taken(tmp_path: Path) -> None:
    short = {e.unit for e in entries() if len(e.source) <= 220}
    rows = make_tasks(TasksPart(n=12, longest=220), tmp_path / "tasks", 1).rows
    assert len(rows) == 12 and {r.unit for r in rows} <= short < {e.unit for e in entries()}


def test_the_stages_take_their_splits() -> None:
    divided = Recipe(tasks=TasksPart(rl_share=0.3)).resolved()
    assert (divided.trace_split, divided.grpo.split) == ("train", "rl")
    whole = Recipe().resolved()
    assert (whole.trace_split, whole.grpo.split) == ("train", "train")


@pytest.mark.parametrize("part", [{"rl_share": 1.0}, {"rl_share": 0.2, "path": Path("tasks")}])
def test_what_can_not_be_divided_is_refused(part: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="rl_share"):
        Recipe(tasks=TasksPart(**part))  # type: ignore[arg-type]


def test_no_function_is_short_enough(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no function"):
        make_tasks(TasksPart(n=4, longest=10), tmp_path / "tasks", 1)
