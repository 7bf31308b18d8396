"""Keys and values of all slots, allocated once, and attention that reads them where they lie."""

from __future__ import annotations

import math
import mmap

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from inloop.engine.batch import Batch, Chunk, Run, causal_mask
from inloop.errors import InloopError


class KVCache:
    """One pair of tensors a layer, (slots, key/value heads, length, head size).

    The pages of a slot take memory when they are first written."""

    def __init__(self, slots: int, length: int, dtype: torch.dtype) -> None:
        self.slots, self.length, self.dtype = slots, length, dtype
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    def layer(self, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The tensors of a layer, made on first use in the shape of `key` and `value`: (T, heads, size)."""
        if index not in self.layers:
            self.layers[index] = (self._room(key), self._room(value))
        return self.layers[index]

    def _room(self, like: Tensor) -> Tensor:
        """Zeros, as what lies past a slot's end is multiplied by 0; fresh pages of the kernel are that for free."""
        shape = (self.slots, like.shape[1], self.length, like.shape[2])
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        try:
            pages = mmap.mmap(-1, math.prod(shape) * self.dtype.itemsize, flags=flags)
            pages.madvise(mmap.MADV_NOHUGEPAGE)  # a slot in use would take 2 MB a head at once
        except OSError as error:
            raise InloopError(
                f"no memory for a cache of {self.slots} slots of {self.length} tokens: {error}",
                fix="ask for fewer slots or a smaller max_model_len",
            ) from error
        return torch.frombuffer(pages, dtype=self.dtype).view(shape)

    def write(self, index: int, batch: Batch, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = self.layer(index, key, value)
        keys[batch.slots, :, batch.positions] = key
        values[batch.slots, :, batch.positions] = value
        return keys, values

    def copy_prefix(self, source: int, target: int, tokens: int) -> None:
        for pair in self.layers.values():
            for tensor in pair:
                tensor[target, :, :tokens] = tensor[source, :, :tokens]


class Attention:
    """Grouped-query attention of one batch over the cache, without copying or repeating keys."""

    def __init__(self, cache: KVCache, batch: Batch) -> None:
        self.cache, self.batch = cache, batch
        self._masks: dict[tuple[int, int | None], Tensor] = {}

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None = None
    ) -> Tensor:
        """`query` (T, heads, size), `key` and `value` (T, key/value heads, size) -> (T, heads, size)."""
        keys, values = self.cache.write(layer, self.batch, key, value)
        out = query.new_empty(*query.shape[:2], value.shape[2])
        for run in self.batch.runs:
            out[run.row : run.row + run.count] = self._decode(run, query, keys, values, scale, window)
        for chunk in self.batch.chunks:
            rows = slice(chunk.row, chunk.row + len(chunk.segment.tokens))
            out[rows] = self._prefill(chunk, query[rows], keys, values, scale, window)
        return out

    def _decode(
        self, run: Run, query: Tensor, keys: Tensor, values: Tensor, scale: float, window: int | None
    ) -> Tensor:
        """The heads that share keys stand in for query positions: no key is repeated."""
        rows = query[run.row : run.row + run.count]
        q = rows.view(run.count, keys.shape[1], -1, query.shape[2])
        at = slice(run.slot, run.slot + run.count)
        mask = run.mask
        if window and run.length > window:
            mask = self._window_mask(run, window)
        got = scaled_dot_product_attention(
            q, keys[at, :, : run.length], values[at, :, : run.length], attn_mask=mask, scale=scale
        )
        return got.reshape(run.count, query.shape[1], -1)

    def _prefill(
        self, chunk: Chunk, query: Tensor, keys: Tensor, values: Tensor, scale: float, window: int | None
    ) -> Tensor:
        """Key/value heads are the batch; the heads that share them see one set through a stride of 0."""
        segment, heads = chunk.segment, keys.shape[1]
        q = query.view(len(segment.tokens), heads, -1, query.shape[2]).permute(1, 2, 0, 3)
        groups = q.shape[1]
        k = keys[segment.slot, :, None, : segment.end].expand(-1, groups, -1, -1)
        v = values[segment.slot, :, None, : segment.end].expand(-1, groups, -1, -1)
        mask = self._chunk_mask(chunk, window)
        got = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
        return got.permute(2, 0, 1, 3).reshape(len(segment.tokens), heads * groups, -1)

    def _chunk_mask(self, chunk: Chunk, window: int | None) -> Tensor:
        key = (chunk.row, window)
        if key not in self._masks:
            self._masks[key] = causal_mask(chunk.segment, window)
        return self._masks[key]

    def _window_mask(self, run: Run, window: int) -> Tensor:
        key = (run.row, window)
        if key not in self._masks:
            segments = self.batch.segments[run.row : run.row + run.count]
            rows = [causal_mask(s, window) for s in segments]
            mask = torch.zeros(run.count, 1, 1, run.length, dtype=torch.bool)
            for i, row in enumerate(rows):
                mask[i, 0, 0, : row.shape[1]] = row[0]
            self._masks[key] = mask
        return self._masks[key]
