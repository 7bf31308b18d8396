"""One sampling step for a whole batch, with the log-probabilities that a trainer computes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

BLOCK = 256


class Wish(Protocol):
    """What sampling needs to know of one row."""

    @property
    def temperature(self) -> float: ...
    @property
    def top_p(self) -> float: ...


def sample(logits: Tensor, wishes: Sequence[Wish], uniforms: Sequence[float]) -> tuple[list[int], list[float]]:
    """Draw one token a row from `logits` (n, V) float32, which it overwrites.

    `uniforms` (n,) in [0, 1) decide the draw, so a request's seed decides its tokens whatever else is in the
    batch. Log-probabilities are of the temperature-scaled full distribution, at temperature 1 for greedy rows,
    and `top_p` does not renormalise them: they are what a trainer computes from the same logits."""
    temperatures = [w.temperature or 1.0 for w in wishes]
    if any(t != 1.0 for t in temperatures):
        logits.div_(torch.tensor(temperatures)[:, None])
    weights = _exponentials(logits)
    blocks = weights.view(len(wishes), -1, BLOCK).sum(-1, dtype=torch.float64)
    totals = blocks.sum(-1)
    ids = _draw(weights, blocks, totals * torch.tensor(uniforms, dtype=torch.float64))
    for row, wish in enumerate(wishes):
        if wish.temperature == 0:
            ids[row] = weights[row].argmax()
        elif wish.top_p < 1:
            ids[row] = _nucleus(weights[row], wish.top_p, uniforms[row])
    chosen = weights.gather(1, ids[:, None]).squeeze(1).double()
    return ids.tolist(), (chosen.log() - totals.log()).tolist()


def _exponentials(logits: Tensor) -> Tensor:
    """exp(logits - max), padded with zeros to whole blocks: (n, ceil(V / BLOCK) * BLOCK)."""
    rows, vocabulary = logits.shape
    out = logits.new_zeros(rows, math.ceil(vocabulary / BLOCK) * BLOCK)
    torch.exp(logits.sub_(logits.amax(-1, keepdim=True)), out=out[:, :vocabulary])
    return out


def _draw(weights: Tensor, blocks: Tensor, targets: Tensor) -> Tensor:
    """Inverse of the cumulative sum: first the block, then the token in it; (n,)."""
    edges = blocks.cumsum(-1)
    block = torch.searchsorted(edges, targets[:, None], right=True).clamp_(max=blocks.shape[1] - 1)
    before = edges.gather(1, block) - blocks.gather(1, block)
    inside = weights.view(*blocks.shape, BLOCK)[torch.arange(len(weights)), block.squeeze(1)].double()
    offset = torch.searchsorted(inside.cumsum(-1), targets[:, None] - before, right=True).squeeze(1)
    last = inside.flip(-1).ne(0).to(torch.int8).argmax(-1)  # rounding must not land on a token of weight 0
    return block.squeeze(1) * BLOCK + torch.minimum(offset, BLOCK - 1 - last)


def _nucleus(weights: Tensor, top_p: float, uniform: float) -> Tensor:
    """Draw from the smallest set of tokens that holds `top_p` of the weight."""
    ordered, ids = weights.double().sort(descending=True)
    edges = ordered.cumsum(0)
    keep = int(torch.searchsorted(edges, top_p * edges[-1])) + 1
    kept = edges[:keep]
    at = torch.searchsorted(kept, uniform * kept[-1], right=True)
    return ids[min(int(at), len(kept) - 1)]
