"""Resumed, forked and repeated histories: a turn that was read before bears its loss only once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from inloop.trace.jsonl import dump
from inloop.trace.trajectory import Trajectory, message_to_dict
from inloop.types import Message, Thinking

SESSIONS = {"claude-code", "codex", "pi", "opencode", "hf-sts"}
"""People's sessions are resumed and forked into new files; rows of a data set that begin alike are not copies."""


class Copies:
    """Remembers each sampled turn with all that stood before it, in 8 bytes."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def learn(self, trajectories: Iterable[Trajectory]) -> None:
        """What a ledger already holds."""
        for trajectory in trajectories:
            if self._applies(trajectory):
                self._seen.update(key for key, _ in self._turns(trajectory))

    def mark(self, trajectory: Trajectory) -> tuple[int, int]:
        """Turns that were read before are no longer sampled; returns (how many, how many are left)."""
        if not self._applies(trajectory):
            return 0, sum(n.sampled for n in trajectory.nodes)
        copies = left = 0
        for key, at in list(self._turns(trajectory)):
            node = trajectory.nodes[at]
            if key in self._seen:
                node.sampled = False
                node.message = replace(node.message, origin="copy")
                copies += 1
            else:
                self._seen.add(key)
                left += 1
        return copies, left

    def _applies(self, trajectory: Trajectory) -> bool:
        return trajectory.meta.get("format") in SESSIONS or bool(trajectory.meta.get("episodes"))

    def _turns(self, trajectory: Trajectory) -> Iterable[tuple[int, int]]:
        """(key, place) of each turn; thoughts don't count, later rows of an episode drop them."""
        chain: dict[str, bytes] = {}
        for at, node in enumerate(trajectory.nodes):
            before = chain.get(node.parent, b"") if node.parent else b""
            key = hashlib.blake2b(before + _said(node.message), digest_size=8).digest()
            chain[node.id] = key
            if node.sampled:
                yield int.from_bytes(key), at


def _said(message: Message) -> bytes:
    kept = tuple(p for p in message.parts if not isinstance(p, Thinking))
    return dump(message_to_dict(replace(message, parts=kept, origin=None)))
