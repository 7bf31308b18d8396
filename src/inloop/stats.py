"""What scores are allowed to say: unbiased pass@k, intervals over tasks, a paired test of two checkpoints.

A task is the unit everywhere: samples of one task are not independent, tasks are. scipy does the resampling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

CONFIDENCE = 0.95
RESAMPLES = 4999
POWER_Z = 0.8416
"""80 % power."""

Verdict = Literal["better", "worse", "can't tell"]


@dataclass(frozen=True, slots=True)
class Interval:
    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    effect: float
    """Mean over tasks of b - a."""
    low: float
    high: float
    """Interval of the effect at `CONFIDENCE`."""
    p: float
    """Two-sided sign-flip permutation test over tasks."""
    tasks: int
    verdict: Verdict
    more_tasks: int | None
    """How many more tasks would decide, at this effect and 80 % power; 0 when decided, None when the effect is 0."""


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """Chance that at least one of k samples drawn without replacement passes (Chen et al. 2021); unbiased."""
    if not 0 <= passed <= samples or not 1 <= k <= samples:
        raise ValueError(f"pass@{k} of {passed} in {samples} samples is not defined")
    return 1.0 - math.comb(samples - passed, k) / math.comb(samples, k)


def proportion_interval(passed: float, tried: float, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval; holds at 0 and at 1, where a bootstrap is blind. tried = 0 knows nothing."""
    if tried <= 0:
        return Interval(math.nan, 0.0, 1.0)
    from scipy.stats import norm

    z = float(norm.ppf((1 + confidence) / 2))
    p = passed / tried
    centre = (p + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z / (1 + z * z / tried) * math.sqrt(p * (1 - p) / tried + z * z / (4 * tried * tried))
    return Interval(p, max(0.0, centre - half), min(1.0, centre + half))


def mean_interval(values: Sequence[float], *, seed: int = 0, confidence: float = CONFIDENCE) -> Interval:
    """Bootstrap over tasks of per-task scores in [0, 1].

    The percentile interval is widened for the number of tasks (Hesterberg 2015, 'expanded percentile'): the plain one
    is too narrow below about 100. When all tasks scored the same there is nothing to resample: Wilson's then."""
    count = len(values)
    if count == 0:
        return Interval(math.nan, 0.0, 1.0)
    mean = math.fsum(values) / count
    if count == 1 or max(values) - min(values) < 1e-12:
        wilson = proportion_interval(mean * count, count, confidence)
        return Interval(mean, wilson.low, wilson.high)
    low, high = _bootstrap(values, seed, confidence)
    return Interval(mean, max(0.0, low), min(1.0, high))


def compare(a: Sequence[float], b: Sequence[float], *, seed: int = 0, confidence: float = CONFIDENCE) -> Comparison:
    """Is b better than a? Paired: a[i] and b[i] are the scores of one task."""
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} scores can't be paired")
    if not a:
        raise ValueError("no task to compare on")
    differences = [y - x for x, y in zip(a, b, strict=True)]
    effect = math.fsum(differences) / len(differences)
    p = _sign_flip(differences, seed)
    decided = p < 1 - confidence
    low, high = _difference_interval(differences, effect, seed, confidence)
    verdict: Verdict = ("better" if effect > 0 else "worse") if decided else "can't tell"
    more = 0 if decided else _more_tasks(differences, effect, confidence)
    return Comparison(effect=effect, low=low, high=high, p=p, tasks=len(a), verdict=verdict, more_tasks=more)


def _difference_interval(
    differences: Sequence[float], effect: float, seed: int, confidence: float
) -> tuple[float, float]:
    if len(differences) > 1 and max(differences) - min(differences) > 1e-12:
        return _bootstrap(differences, seed, confidence)
    # all tasks moved by the same amount: what is not known is how many others would not have
    unseen = 1 - proportion_interval(len(differences), len(differences), confidence).low
    return max(-1.0, effect - unseen), min(1.0, effect + unseen)


def _bootstrap(values: Sequence[float], seed: int, confidence: float) -> tuple[float, float]:
    import numpy as np
    from scipy.stats import bootstrap

    result = bootstrap(
        (np.asarray(values, dtype=float),),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=_expanded(len(values), confidence),
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _expanded(count: int, confidence: float) -> float:
    """The level at which a percentile interval of `count` values is as wide as a t interval."""
    from scipy.stats import norm, t

    quantile = t.ppf((1 + confidence) / 2, count - 1) * math.sqrt(count / (count - 1))
    return float(2 * norm.cdf(quantile) - 1)


def _sign_flip(differences: Sequence[float], seed: int) -> float:
    import numpy as np
    from scipy.stats import permutation_test

    values = np.asarray([d for d in differences if d != 0], dtype=float)
    if not values.size:
        return 1.0
    if values.size == 1:
        return 1.0  # one task that moved: both signs are as likely
    result = permutation_test(
        (values, np.zeros_like(values)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=9999,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def _more_tasks(differences: Sequence[float], effect: float, confidence: float) -> int | None:
    if abs(effect) < 1e-12:
        return None
    from scipy.stats import norm

    variance = math.fsum((d - effect) ** 2 for d in differences) / max(len(differences) - 1, 1)
    z = float(norm.ppf((1 + confidence) / 2)) + POWER_Z
    return max(1, math.ceil(variance * (z / effect) ** 2) - len(differences))
