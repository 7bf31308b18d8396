"""The sampling step draws what it says it draws."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inloop.engine.base import Sampling
from inloop.engine.sampling import sample

VOCABULARY = 700


def logits(rows: int, seed: int = 0, scale: float = 3.0) -> torch.Tensor:
    return torch.randn(rows, VOCABULARY, generator=torch.Generator().manual_seed(seed)) * scale


def test_logprobs_are_log_softmax_of_scaled_logits() -> None:
    given_logits = logits(4)
    temperatures = [1.0, 0.5, 2.0, 0.0]
    wishes = [Sampling(temperature=t) for t in temperatures]
    ids, logprobs = sample(given_logits.clone(), wishes, [0.1, 0.5, 0.9, 0.3])
    for row, (token, logprob) in enumerate(zip(ids, logprobs, strict=True)):
        wanted = (given_logits[row].double() / (temperatures[row] or 1.0)).log_softmax(-1)
        assert logprob == pytest.approx(float(wanted[token]), abs=1e-5)
    assert ids[3] == int(given_logits[3].argmax())


def test_uniform_numbers_give_the_distribution() -> None:
    """The inverse of the cumulative sum: an even grid of uniforms hits each token in proportion."""
    row = logits(1, 3)
    grid = 20_000
    counts = torch.zeros(VOCABULARY, dtype=torch.float64)
    for start in range(0, grid, 1000):
        uniforms = [(start + i + 0.5) / grid for i in range(1000)]
        ids, _ = sample(row.repeat(1000, 1), [Sampling()] * 1000, uniforms)
        counts += torch.bincount(torch.tensor(ids), minlength=VOCABULARY)
    wanted = row[0].double().softmax(-1)
    assert float((counts / grid - wanted).abs().max()) < 1.5 / grid * 2


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    rows, dice = logits(8, 5), random.Random(1)
    uniforms = [dice.random() for _ in range(8)]
    wishes = [Sampling(temperature=0.5 + 0.1 * i, top_p=1.0 if i % 2 else 0.8) for i in range(8)]
    together = sample(rows.clone(), wishes, uniforms)
    apart = [sample(rows[i : i + 1].clone(), wishes[i : i + 1], uniforms[i : i + 1]) for i in range(8)]
    assert together[0] == [ids[0] for ids, _ in apart]
    assert together[1] == pytest.approx([logprobs[0] for _, logprobs in apart], abs=1e-6)


def test_top_p_keeps_to_the_nucleus() -> None:
    row = logits(1, 7)
    ordered = row[0].softmax(-1).sort(descending=True)
    nucleus = set(ordered.indices[: int((ordered.values.cumsum(0) < 0.6).sum()) + 1].tolist())
    ids, logprobs = sample(row.repeat(500, 1), [Sampling(top_p=0.6)] * 500, [i / 500 for i in range(500)])
    assert set(ids) == nucleus
    full = row[0].log_softmax(-1)
    assert logprobs == pytest.approx([float(full[i]) for i in ids], abs=1e-5)


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 50), st.sampled_from([0.5, 1.0, 30.0, 500.0]))
def test_never_a_token_of_probability_zero(uniform: float, seed: int, scale: float) -> None:
    row = logits(1, seed, scale)
    row[0, seed::3] = -torch.inf
    (token,), (logprob,) = sample(row.clone(), [Sampling()], [uniform])
    assert row[0, token] > -torch.inf and logprob <= 1e-6 and logprob > -torch.inf
