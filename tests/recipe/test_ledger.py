"""Stages are done once; what is derived from the others is made anew when one of them was done since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.tiny_task import write_task

from inloop.files import append_json
from inloop.recipe.config import load_recipe
from inloop.recipe.ledger import Stages
from inloop.recipe.run import RecipeRun
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.taskset import Taskset


def test_a_stage_that_raises_is_not_done(tmp_path: Path) -> None:
    stages = Stages(tmp_path)
    with pytest.raises(ZeroDivisionError):
        stages.do("a", lambda: {"x": 1 // 0})
    stages.do("b", lambda: {"x": 2})
    again = Stages(tmp_path).done
    assert again.keys() == {"b"} and again["b"]["x"] == 2 and again["b"]["seconds"] >= 0


def test_the_report_is_made_anew_after_a_stage_that_was_left_out(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks")
    Taskset.scan(tmp_path / "tasks").save()
    recipe = load_recipe("fast", ['stages=["tasks","report"]', f'tasks.path="{tmp_path / "tasks"}"'])
    out = tmp_path / "run"
    out.mkdir()
    append_json(out / "stages.jsonl", {"stage": "report", "seconds": 1.0, "report": "an older one"})

    def run() -> list[str]:
        RecipeRun(recipe, out, Bubblewrap()).run()
        return [json.loads(x)["stage"] for x in (out / "stages.jsonl").read_text().splitlines()]

    assert run() == ["report", "tasks", "report"] and (out / "report.html").is_file()
    assert run() == ["report", "tasks", "report"]
