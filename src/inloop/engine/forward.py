"""How a batch becomes logits: a lean pass for the Llama family, transformers' own forward for the rest."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.cache_utils import CacheLayerMixin

from inloop.engine.batch import Batch, Segment
from inloop.engine.cache import Attention, KVCache

NAME = "inloop_slots"


class Forward(Protocol):
    """Runs batches against the slots' caches."""

    shares_prefixes: bool

    def logits(self, batch: Batch) -> Tensor:
        """(n, V) float32: of the last token of each answering segment."""
        ...

    def copy_prefix(self, source: int, target: int, tokens: int) -> None: ...

    def truncate(self, slot: int, tokens: int) -> int:
        """Keep at most `tokens` of a slot's cache; returns how many are kept."""
        ...

    def weights_changed(self) -> None: ...


class Slotted:
    """What passes over a preallocated cache have in common."""

    shares_prefixes = True

    def __init__(self, cache: KVCache) -> None:
        self.cache = cache

    def copy_prefix(self, source: int, target: int, tokens: int) -> None:
        self.cache.copy_prefix(source, target, tokens)

    def truncate(self, slot: int, tokens: int) -> int:
        return tokens

    def weights_changed(self) -> None:
        return None


class PackedForward(Slotted):
    """transformers' forward over the flat batch; only attention is ours."""

    def __init__(self, model: Any, cache: KVCache) -> None:
        super().__init__(cache)
        self.model = model
        AttentionInterface.register(NAME, _attend)
        AttentionMaskInterface.register(NAME, lambda **_: None)
        model.set_attn_implementation(NAME)

    def logits(self, batch: Batch) -> Tensor:
        out = self.model(
            input_ids=batch.ids[None],
            position_ids=batch.positions[None],
            use_cache=False,
            logits_to_keep=batch.last_rows,
            inloop_attention=Attention(self.cache, batch),
        )
        logits: Tensor = out.logits[0].float()
        return logits


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    sliding_window: int | None = None,
    inloop_attention: Attention | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """transformers' attention function: tensors are (1, heads, T, size)."""
    assert inloop_attention is not None
    if kwargs.get("softcap") or kwargs.get("s_aux") is not None:
        raise NotImplementedError("soft-capped attention and attention sinks run on transformers' own cache")
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    q, k, v = (t[0].transpose(0, 1) for t in (query, key, value))
    out = inloop_attention(module.layer_idx, q.contiguous(), k, v, scale, sliding_window)
    return out[None], None


class PlainForward:
    """One transformers cache a slot, one forward a segment: slow, and right for every causal model."""

    shares_prefixes = False

    def __init__(self, model: Any) -> None:
        self.model = model
        self.caches: dict[int, DynamicCache] = {}
        self.lengths: dict[int, int] = {}
        named = inspect.signature(model.forward).parameters
        self.argument = "cache" if "cache" in named else "past_key_values"
        self.positions = "position_ids" in named

    def logits(self, batch: Batch) -> Tensor:
        rows = [self._segment(s) for s in batch.segments]
        kept = [row for row, s in zip(rows, batch.segments, strict=True) if s.wants_logits]
        return torch.stack(kept) if kept else torch.empty(0, 0)

    def _segment(self, segment: Segment) -> Tensor:
        """A recurrent state takes one token at a time once it has begun."""
        cache = self.caches.setdefault(segment.slot, DynamicCache(config=self.model.config))
        recurrent = any(not isinstance(layer, CacheLayerMixin) for layer in cache.layers)
        size = 1 if recurrent and segment.start else len(segment.tokens)
        for at in range(0, len(segment.tokens), size):
            logits = self._forward(segment.tokens[at : at + size], segment.start + at, cache)
        self.lengths[segment.slot] = segment.end
        return logits

    def _forward(self, tokens: list[int], start: int, cache: DynamicCache) -> Tensor:
        kw: dict[str, Any] = {self.argument: cache, "use_cache": True, "logits_to_keep": 1}
        if self.positions:
            kw["position_ids"] = torch.arange(start, start + len(tokens))[None]
        logits: Tensor = self.model(input_ids=torch.tensor([tokens]), **kw).logits[0, -1].float()
        return logits

    def copy_prefix(self, source: int, target: int, tokens: int) -> None:
        raise NotImplementedError

    def truncate(self, slot: int, tokens: int) -> int:
        """A cache of another length is dropped: not every model's state can be cut back."""
        if self.lengths.get(slot) == tokens:
            return tokens
        self.caches.pop(slot, None)
        self.lengths.pop(slot, None)
        return 0

    def weights_changed(self) -> None:
        return None
