"""Against closed forms where there are some, against simulation where there are none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from inloop import stats


@pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 1), (4, 1, 2), (5, 3, 4), (6, 0, 3), (6, 6, 2), (7, 2, 7)])
def test_pass_at_k_is_the_share_of_subsets_with_a_pass(n: int, c: int, k: int) -> None:
    outcomes = [True] * c + [False] * (n - c)
    subsets = list(itertools.combinations(outcomes, k))
    assert stats.pass_at_k(n, c, k) == pytest.approx(sum(any(s) for s in subsets) / len(subsets))


def test_pass_at_k_is_unbiased() -> None:
    rng, p, k = np.random.default_rng(0), 0.3, 3
    estimates = [stats.pass_at_k(8, int(rng.binomial(8, p)), k) for _ in range(4000)]
    assert np.mean(estimates) == pytest.approx(1 - (1 - p) ** k, abs=0.015)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, 1, 5), (4, 1, 0), (0, 0, 1)])
def test_pass_at_k_refuses_what_is_not_defined(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="not defined"):
        stats.pass_at_k(n, c, k)


def test_wilson_against_scipy() -> None:
    from scipy.stats import binomtest

    for passed, tried in ((0, 10), (3, 10), (10, 10), (37, 100)):
        theirs = binomtest(passed, tried).proportion_ci(method="wilson")
        ours = stats.proportion_interval(passed, tried)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_interval_of_nothing_and_of_one_answer() -> None:
    assert math.isnan(stats.mean_interval([]).mean) and stats.mean_interval([]).high == 1.0
    assert stats.mean_interval([0.0] * 40).high == pytest.approx(stats.proportion_interval(0, 40).high)
    assert stats.mean_interval([1.0]).low < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mean", "draw"),
    [
        ("one sample a task, p = 0.3", 0.3, lambda rng: (rng.random(40) < 0.3).astype(float)),
        ("four samples, half of the tasks hard", 0.25, lambda rng: rng.binomial(4, rng.beta(0.5, 1.5, 40)) / 4),
        ("four samples, mixed tasks", 0.5, lambda rng: rng.binomial(4, rng.beta(1, 1, 40)) / 4),
    ],
)
def test_intervals_cover(name: str, mean: float, draw: Callable[[np.random.Generator], np.ndarray]) -> None:
    """93 to 97 % at 40 tasks; 1,000 draws see the share to within 1.4 points."""
    rng, hits, draws = np.random.default_rng(1), 0, 1000
    for seed in range(draws):
        interval = stats.mean_interval(draw(rng).tolist(), seed=seed)
        hits += interval.low <= mean <= interval.high
    assert 0.93 <= hits / draws <= 0.975, name


@pytest.mark.slow
def test_no_difference_is_rarely_called_better() -> None:
    rng, better, draws = np.random.default_rng(2), 0, 400
    for seed in range(draws):
        p = rng.beta(0.5, 1.5, 40)
        a, b = rng.binomial(4, p) / 4, rng.binomial(4, p) / 4
        better += stats.compare(a.tolist(), b.tolist(), seed=seed).verdict == "better"
    assert better / draws <= 0.05


def test_permutation_p_is_exact_for_few_tasks() -> None:
    # five tasks all better: only the all-plus and all-minus assignments are as extreme, 2 of 32
    assert stats.compare([0.0] * 5, [1.0] * 5).p == pytest.approx(2 / 32)
    assert stats.compare([0.0] * 6, [1.0] * 6).verdict == "better"
    assert stats.compare([1.0] * 6, [0.0] * 6).verdict == "worse"


def test_undecided_says_how_many_more() -> None:
    rng = np.random.default_rng(3)
    a = rng.binomial(4, 0.4, 40) / 4
    b = np.clip(a + rng.choice([-0.25, 0.0, 0.25], 40, p=[0.3, 0.35, 0.35]), 0, 1)
    result = stats.compare(a.tolist(), b.tolist())
    assert result.verdict == "can't tell" and result.low < 0 < result.high
    assert result.more_tasks is None or result.more_tasks > 0
    same = stats.compare([0.5, 0.25], [0.5, 0.25])
    assert (same.p, same.effect, same.more_tasks, same.verdict) == (1.0, 0.0, None, "can't tell")


def test_more_tasks_gives_the_power_that_it_promises() -> None:
    """With the number that it asks for, a true effect of that size is found about 80 % of the time."""
    rng = np.random.default_rng(4)
    differences = rng.normal(0.05, 0.3, 2000).clip(-1, 1).tolist()
    effect = float(np.mean(differences))
    asked = stats._more_tasks(differences[:100], effect, 0.95)
    assert asked is not None
    found = [
        stats.compare([0.0] * (100 + asked), rng.choice(differences, 100 + asked).tolist(), seed=i).verdict == "better"
        for i in range(60)
    ]
    assert 0.6 <= np.mean(found) <= 0.95


@pytest.mark.parametrize(("a", "b"), [([], []), ([0.0], [0.0, 1.0])])
def test_what_cannot_be_paired_is_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match=r"paired|no task"):
        stats.compare(a, b)
