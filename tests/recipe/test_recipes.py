"""Recipes that come along are whole, and errors in one's own name the file and the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inloop.cli.train_ import app
from inloop.config import dump
from inloop.errors import ConfigError
from inloop.recipe.config import STAGES, load_recipe

NAMES = ("quickstart", "fast", "your-repo", "one-gpu", "node", "cluster")


@pytest.mark.parametrize("name", NAMES)
def test_recipes_resolve(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name, ["seed=3"])
    assert recipe.grpo.seed == recipe.sft.seed == recipe.evaluate.seed == 3
    assert recipe.sft.model == recipe.model and set(recipe.stages) <= set(STAGES)
    again = tmp_path / "again.toml"
    again.write_text(dump(recipe))
    assert load_recipe(again) == recipe


def test_the_quickstart_runs_every_stage() -> None:
    assert load_recipe("quickstart").stages == load_recipe("fast").stages == STAGES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[grpo]\nstepps = 3\n", "steps"),
        ('stages = ["tsks"]\n', "tsks"),
        ('[tasks]\nbuilder = "mutate"\n', "tasks.source"),
    ],
)
def test_a_wrong_recipe_says_where(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_recipe(file)
    assert said in str(error.value) and "mine.toml" in str(error.value)


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(ConfigError, match="your-repo"):
        load_recipe("my-repo")


def test_dry_run_prints_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = CliRunner().invoke(app, ["fast", "--out", str(out), "--dry-run", "--no-pilot", "--json"])
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert plan["config"]["grpo"]["steps"] == 1 and plan["stages"] == list(STAGES)
    assert not out.exists()
