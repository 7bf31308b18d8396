"""Which conversation holds which slot of the cache, and how much of a prompt is there already."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MIN_SHARED = 16
"""A shorter shared prefix is cheaper computed than copied."""

Tokens = NDArray[np.int64]


@dataclass(slots=True)
class Slot:
    index: int
    conversation: str | None = None
    tokens: Tokens = field(default_factory=lambda: np.empty(0, np.int64))
    """What the cache holds, or will hold when the running prompt is through."""
    computed: int = 0
    """How many of `tokens` are in the cache."""
    epoch: int = 0
    """Weights that computed them."""
    busy: bool = False
    used: int = 0
    """When it was last used: the order of eviction."""


def common(a: Tokens, b: Tokens) -> int:
    """Length of the shared prefix."""
    n = min(len(a), len(b))
    differs = np.flatnonzero(a[:n] != b[:n])
    return int(differs[0]) if len(differs) else n


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a prompt goes."""

    slot: Slot
    kept: int
    """Leading prompt tokens that its own cache holds."""
    source: Slot | None = None
    shared: int = 0
    """Leading prompt tokens to copy from `source`, when that is more than `kept`."""


class Seats:
    """Finds a slot for a prompt: its conversation's own, else the one that is free longest."""

    def __init__(self, count: int, *, share: bool) -> None:
        self.slots = [Slot(i) for i in range(count)]
        self.share = share
        self._clock = itertools.count(1)

    def find(self, prompt: Sequence[int], conversation: str | None, epoch: int) -> Seat | None:
        """None when the prompt has to wait: no slot is free, or what it would copy is still being computed."""
        tokens = np.asarray(prompt, np.int64)
        own = self._own(tokens, conversation, epoch)
        if own is not None and own.busy:
            return None
        slot = own or self._free()
        if slot is None:
            return None
        room = len(tokens) - 1  # the last token is always computed: its logits are wanted
        kept = min(common(slot.tokens[: slot.computed], tokens), room) if slot.epoch == epoch else 0
        if not self.share:
            return Seat(slot, kept)
        source, shared = self._best_source(slot, tokens[:room], epoch)
        if source is None or shared < kept + MIN_SHARED:
            return Seat(slot, kept)
        return Seat(slot, kept, source, shared) if shared <= source.computed else None

    def take(self, seat: Seat, prompt: Sequence[int], conversation: str | None, epoch: int) -> None:
        slot = seat.slot
        slot.conversation, slot.epoch, slot.busy = conversation, epoch, True
        slot.tokens = np.asarray(prompt, np.int64)
        slot.computed = max(seat.kept, seat.shared)
        slot.used = next(self._clock)

    def release(self, slot: Slot, tokens: Sequence[int], computed: int) -> None:
        """The request is done; what it computed stays for the conversation's next turn."""
        slot.busy, slot.tokens, slot.computed = False, np.asarray(tokens[:computed], np.int64), computed
        slot.used = next(self._clock)

    def forget(self, conversation: str) -> None:
        """The cache stays as a prefix for others, first to be evicted."""
        for slot in self.slots:
            if slot.conversation == conversation:
                slot.conversation, slot.used = None, 0

    def _own(self, tokens: Tokens, conversation: str | None, epoch: int) -> Slot | None:
        if conversation is not None:
            return next((s for s in self.slots if s.conversation == conversation), None)
        anonymous = [s for s in self.slots if s.conversation is None and not s.busy and s.computed >= MIN_SHARED]
        continued = [s for s in anonymous if s.epoch == epoch and common(s.tokens, tokens) == s.computed]
        return max(continued, key=lambda s: s.computed, default=None)

    def _free(self) -> Slot | None:
        """Empty slots first, then those of no conversation, then the one that rested longest."""
        idle = [s for s in self.slots if not s.busy]
        return min(idle, key=lambda s: (s.computed > 0, s.conversation is not None, s.used, s.index), default=None)

    def _best_source(self, slot: Slot, tokens: Tokens, epoch: int) -> tuple[Slot | None, int]:
        found = [(common(s.tokens, tokens), s) for s in self.slots if s is not slot and s.epoch == epoch]
        shared, source = max(found, key=lambda pair: (pair[0], pair[1].computed), default=(0, slot))
        return (None, 0) if source is slot else (source, shared)
