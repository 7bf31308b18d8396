"""The invariants of a trajectory: findings with their ids and rows; nothing is changed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from inloop.trace.jsonl import dump
from inloop.trace.trajectory import Node, Trajectory, message_to_dict, plain
from inloop.types import Call, Text, Thinking


class Tokenizer(Protocol):
    """What is used of a `transformers` tokenizer."""

    def decode(self, token_ids: Any, **kw: Any) -> Any: ...

    def encode(self, text: str, **kw: Any) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    trajectory: str
    row: int
    """1-based place in what was read."""
    node: str
    """'' when it is about the whole trajectory."""
    code: str
    level: Literal["error", "note"]
    """error: the trajectory contradicts itself; note: something a selection will want to know."""
    message: str


Found = Iterator[tuple[str, str, Literal["error", "note"], str]]


def check(trajectory: Trajectory, *, row: int = 0, tokenizer: Tokenizer | None = None) -> list[Finding]:
    """All findings of one trajectory; a structure that is no forest is reported alone."""
    found = list(_structure(trajectory))
    if not found:
        for part in (_sampled_once, _pairs, _tokens, _spans):
            found += part(trajectory)
        found += _decodes(trajectory, tokenizer) if tokenizer else ()
    return [
        Finding(trajectory=trajectory.id, row=row, node=node, code=code, level=level, message=message)
        for node, code, level, message in found
    ]


def check_all(trajectories: Iterable[Trajectory], tokenizer: Tokenizer | None = None) -> Iterator[Finding]:
    """Findings over a whole ledger."""
    seen: dict[str, int] = {}
    for row, trajectory in enumerate(trajectories, 1):
        if (first := seen.setdefault(trajectory.id, row)) != row:
            message = f"row {first} has the same id"
            yield Finding(trajectory=trajectory.id, row=row, node="", code="id_twice", level="error", message=message)
        yield from check(trajectory, row=row, tokenizer=tokenizer)


def _structure(trajectory: Trajectory) -> Found:
    if not trajectory.nodes:
        yield "", "empty", "error", "no messages"
    known: set[str] = set()
    for node in trajectory.nodes:
        if node.id in known:
            yield node.id, "node_twice", "error", "two nodes have this id"
        if node.parent is not None and node.parent not in known:
            yield node.id, "parent", "error", f"its parent {node.parent} is not written before it"
        known.add(node.id)


def _sampled_once(trajectory: Trajectory) -> Found:
    """The same words after the same history, sampled twice in one trajectory, would bear their loss twice."""
    chain: dict[str, bytes] = {}
    seen: dict[bytes, str] = {}
    for node in trajectory.nodes:
        before = chain[node.parent] if node.parent else b""
        key = hashlib.sha256(before + dump([message_to_dict(node.message), node.token_ids])).digest()
        chain[node.id] = key
        if not node.sampled:
            continue
        if node.message.role != "assistant":
            yield node.id, "sampled_role", "error", f"sampled, but its role is {node.message.role}"
        if first := seen.get(key):
            yield node.id, "sampled_twice", "error", f"the same message as {first} after the same history"
        seen.setdefault(key, node.id)


def _pairs(trajectory: Trajectory) -> Found:
    """Each result answers a call that stands before it on its path, once; each call but the last turn's has one."""
    index = trajectory.by_id()
    open_calls: dict[str | None, dict[str, str]] = {None: {}}
    for node in trajectory.nodes:
        waiting = dict(open_calls[node.parent])
        message = node.message
        if message.role == "tool" or message.call_id is not None:
            if message.call_id is None or waiting.pop(message.call_id, None) is None:
                yield node.id, "orphan_result", "note", f"answers no open call (call id {message.call_id!r})"
            if message.role == "user":  # a text harness answers all calls of a turn at once
                waiting = {}
        elif message.role == "assistant":
            for call_id, owner in waiting.items():
                yield index[owner].id, "missing_result", "note", f"call {call_id!r} was never answered"
            waiting = {call.id: node.id for call in message.all_calls}
            yield from _calls(node)
        open_calls[node.id] = waiting


def _calls(node: Node) -> Found:
    ids = [c.id for c in node.message.all_calls]
    for call in node.message.all_calls:
        if ids.count(call.id) > 1:
            yield node.id, "call_twice", "error", f"two calls of one turn have the id {call.id!r}"
        if call.arguments is None:
            yield node.id, "malformed_call", "note", f"the arguments of {call.name!r} do not parse"


def _tokens(trajectory: Trajectory) -> Found:
    for node in trajectory.nodes:
        ids, logprobs = node.token_ids, node.logprobs
        if ids is not None and any(type(i) is not int or i < 0 for i in ids):
            yield node.id, "token_ids", "error", "token ids are not all non-negative integers"
        if logprobs is None:
            continue
        if ids is None or len(ids) != len(logprobs):
            yield node.id, "logprobs_length", "error", f"{len(logprobs)} logprobs for {len(ids or [])} tokens"
        if bad := [p for p in logprobs if not isinstance(p, int | float) or not math.isfinite(p) or p > 0]:
            yield node.id, "logprobs_range", "error", f"{len(bad)} logprobs are not finite and <= 0, first {bad[0]}"


def _spans(trajectory: Trajectory) -> Found:
    for node in trajectory.nodes:
        for name, spans, size in (
            ("untrained", node.untrained, len(plain(node.message))),
            ("untrained_ids", node.untrained_ids, len(node.token_ids or ())),
        ):
            edges = [edge for span in spans for edge in span]
            if (
                edges != sorted(edges)
                or any(a >= b for a, b in spans)
                or (edges and not 0 <= edges[0] <= edges[-1] <= size)
            ):
                yield node.id, name, "error", f"spans {spans} are not sorted, disjoint and within {size}"


def _decodes(trajectory: Trajectory, tokenizer: Tokenizer) -> Found:
    for node in trajectory.nodes:
        if node.token_ids is None:
            continue
        try:
            decoded = str(tokenizer.decode(node.token_ids, skip_special_tokens=False))
        except (IndexError, KeyError, OverflowError, ValueError, TypeError) as error:
            yield node.id, "decode", "error", f"the tokenizer can't decode its ids: {error}"
            continue
        for part in node.message.parts:
            words = part.raw if isinstance(part, Call) else part.text if isinstance(part, Text | Thinking) else ""
            if words.strip() not in decoded:
                kind = type(part).__name__.lower()
                yield node.id, "decode", "error", f"its ids do not decode to its {kind} {words.strip()[:60]!r}"
