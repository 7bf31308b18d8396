"""The tokens that a whole batch begins with are computed once.

Every sample of a harness opens with the same system message, often a third of it. Its keys and values are computed
for one row and shared by all rows, gradients included; the result is that of the plain forward pass up to rounding.

B: rows; T: tokens; P: shared tokens; H: hidden size.
"""

from __future__ import annotations

from typing import Any

import torch

from inloop.data.sample import MASKED

LEAST = 16
"""Fewer shared tokens are not worth a second call."""


def shared_length(input_ids: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> int:
    """input_ids, labels, mask (B, T) -> P: how many first tokens all rows have in common, none of them a label, nor
    the one after them. 0 where it is not worth it."""
    if len(input_ids) < 2:
        return 0
    same = ((input_ids == input_ids[:1]) & (labels == MASKED) & (mask == 1)).all(0)
    length = int(same.long().cumprod(0).sum()) - 1
    return length if length >= LEAST else 0


def can_share(model: Any) -> bool:
    """Full attention in every block, and nothing random in the forward pass."""
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or []
    drops = any(isinstance(m, torch.nn.Dropout) and m.p > 0 for m in model.modules())
    return not drops and all(kind == "full_attention" for kind in kinds)


def last_hidden(body: Any, input_ids: torch.Tensor, mask: torch.Tensor, shared: int) -> torch.Tensor:
    """input_ids, mask (B, T) -> hidden states (B, T - P, H) of what follows the shared tokens."""
    if not shared:
        out: torch.Tensor = body(input_ids=input_ids, attention_mask=mask, use_cache=False).last_hidden_state
        return out
    from transformers import DynamicCache

    cache = DynamicCache(config=body.config)
    body(input_ids=input_ids[:1, :shared], use_cache=True, past_key_values=cache)
    for layer in cache.layers:
        layer.keys = layer.keys.expand(len(input_ids), -1, -1, -1)
        layer.values = layer.values.expand(len(input_ids), -1, -1, -1)
    rest: torch.Tensor = body(
        input_ids=input_ids[:, shared:], attention_mask=mask, use_cache=True, past_key_values=cache
    ).last_hidden_state
    return rest
