"""What an export loses, by name and number."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Image, Thinking

Losses = Counter[str]


def contexts(trajectory: Trajectory, losses: Losses) -> Iterator[tuple[list[Node], set[str]]]:
    """(path, ids of its nodes that an earlier path has already shown) of each leaf."""
    shown: set[str] = set()
    for number, path in enumerate(trajectory.paths()):
        shared = {n.id for n in path if n.id in shown}
        if number:
            losses["the forest is cut into one row a context"] += 1
        yield path, shared
        shown.update(n.id for n in path)


def note_common(path: list[Node], losses: Losses) -> None:
    """What no chat-shaped format holds."""
    for node in path:
        parts = node.message.parts
        kinds = [type(p).__name__ for p in parts]
        if any(isinstance(p, Thinking) and p.hidden for p in parts):
            losses["hidden thoughts"] += 1
        if kinds != sorted(kinds, key=["Thinking", "Text", "Image", "Call"].index):
            losses["the order of thoughts, text and calls"] += 1
        if any(isinstance(p, Image) for p in parts):
            losses["image bytes (the hash is kept)"] += 1
        if any(c.embedded for c in node.message.all_calls):
            losses["calls inside the text stay text"] += 1
        if node.untrained:
            losses["spans that redaction marked untrained"] += 1


def wire(call: Call, losses: Losses) -> str:
    """Arguments as the chat wire has them: what the model wrote, unless that is parsed but no JSON."""
    if call.arguments is None:
        return call.raw
    try:
        if json.loads(call.raw or "{}") == call.arguments:
            return call.raw
    except ValueError:
        pass
    losses["the words of arguments that are not JSON"] += 1
    return json.dumps(call.arguments, ensure_ascii=False)
