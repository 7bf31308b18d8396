"""One step of the engine: tokens of several conversations in one flat batch, and where each belongs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive new tokens of one slot."""

    slot: int
    start: int
    """Tokens of the slot that are in the cache already."""
    tokens: list[int]
    wants_logits: bool = True
    """False for the first chunks of a long prompt."""

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)


@dataclass(frozen=True, slots=True)
class Run:
    """Adjacent slots that each decode one token: they attend in one call, straight from the cache."""

    row: int
    slot: int
    count: int
    length: int
    """Longest context among them."""
    mask: Tensor | None
    """(count, 1, 1, length) boolean, true where a slot may look; None when all are of one length."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Several new tokens of one slot: a prompt, or what a tool answered."""

    row: int
    segment: Segment


class Batch:
    """Segments in the order of their rows: decoding slots first, by slot; then prompts.

    `ids`, `positions`, `slots`: (T,) int64."""

    def __init__(self, segments: list[Segment]) -> None:
        decoding = sorted((s for s in segments if len(s.tokens) == 1), key=lambda s: s.slot)
        self.decoding = len(decoding)
        self.segments = decoding + [s for s in segments if len(s.tokens) > 1]
        self.ids = torch.tensor([t for s in self.segments for t in s.tokens])
        self.positions = torch.tensor([p for s in self.segments for p in range(s.start, s.end)])
        self.slots = torch.tensor([s.slot for s in self.segments for _ in s.tokens])

    @cached_property
    def answering(self) -> list[Segment]:
        """The segments whose last token gets logits, in the order of the logits' rows."""
        return [s for s in self.segments if s.wants_logits]

    @cached_property
    def last_rows(self) -> Tensor:
        """(n,) row of the last token of each answering segment."""
        rows, row = [], -1
        for segment in self.segments:
            row += len(segment.tokens)
            if segment.wants_logits:
                rows.append(row)
        return torch.tensor(rows, dtype=torch.int64)

    @cached_property
    def runs(self) -> list[Run]:
        groups: list[list[Segment]] = []
        for segment in self.segments[: self.decoding]:
            if groups and groups[-1][-1].slot + 1 == segment.slot:
                groups[-1].append(segment)
            else:
                groups.append([segment])
        runs, row = [], 0
        for group in groups:
            ends = [s.end for s in group]
            runs.append(Run(row, group[0].slot, len(group), max(ends), _length_mask(ends)))
            row += len(group)
        return runs

    @cached_property
    def chunks(self) -> list[Chunk]:
        out, row = [], self.decoding
        for segment in self.segments[self.decoding :]:
            out.append(Chunk(row, segment))
            row += len(segment.tokens)
        return out


def _length_mask(ends: list[int]) -> Tensor | None:
    if min(ends) == max(ends):
        return None
    return (torch.arange(max(ends)) < torch.tensor(ends)[:, None])[:, None, None, :]


def causal_mask(segment: Segment, window: int | None = None) -> Tensor:
    """(T, end) boolean: what each new token may look at, itself included."""
    query = torch.arange(segment.start, segment.end)[:, None]
    key = torch.arange(segment.end)
    mask = key <= query
    return mask & (key > query - window) if window else mask
