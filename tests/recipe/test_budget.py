"""A budget gives training what the measuring does not need, and a stage that has no time left is left out."""

from __future__ import annotations

import pytest

from inloop.errors import ConfigError
from inloop.recipe.budget import Budget, parse_budget
from inloop.recipe.config import load_recipe
from inloop.recipe.forecast import Range, interval


@pytest.mark.parametrize(("text", "seconds"), [("2h", 7200), ("90min", 5400), ("1.5 h", 5400), ("30", 30), ("5m", 300)])
def test_times(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "2 weeks", "-1h", "0", "nan", "inf"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ConfigError, match="budget"):
        parse_budget(text)


def test_training_leaves_time_for_the_measuring() -> None:
    recipe = load_recipe("quickstart")
    budget = Budget(1000.0, spent=100.0)
    sft = budget.fitted(recipe, "sft").sft.wall_seconds
    grpo = budget.fitted(recipe, "grpo").grpo.wall_seconds
    assert 255 < sft <= 260 and 645 < grpo <= 650
    assert budget.fitted(recipe, "evaluate") is recipe and not budget.gone()
    assert Budget(1000.0, spent=1000.0).gone() and not Budget(0.0, spent=1e9).gone()
    assert Budget(0.0).fitted(recipe, "sft") is recipe


def test_a_recipe_s_own_limit_holds_where_it_is_sooner() -> None:
    recipe = load_recipe("quickstart", ["grpo.wall_seconds=60.0"])
    assert Budget(1000.0).fitted(recipe, "grpo").grpo.wall_seconds == 60.0


def test_intervals_of_rates() -> None:
    got = interval([10.0, 12.0, 14.0])
    assert got.mean == 12.0 and got.low == pytest.approx(12 - 4.303 * 2 / 3**0.5, abs=1e-3)
    seconds = got.over(120)
    assert seconds.low < seconds.mean == 10.0 < seconds.high
    assert interval([1.0, 100.0]).low > 0 and interval([4.0]) == Range(low=2.0, mean=4.0, high=8.0)
