"""Hugging Face session traces: a session line, then one line a message."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from inloop.trace.trajectory import Node, Trajectory
from inloop.trace.write.chat import spoken
from inloop.trace.write.losses import Losses, contexts, note_common, wire

NAME = "hf-sts"


def write(trajectory: Trajectory, losses: Losses) -> list[dict[str, Any]]:
    """The records of all contexts; a `session` record begins each."""
    out: list[dict[str, Any]] = []
    for number, (path, shared) in enumerate(contexts(trajectory, losses)):
        note_common(path, losses)
        own = trajectory.id if not number else f"{trajectory.id}#{number}"
        out.append({"type": "session", "harness": str(trajectory.agent.get("name") or "inloop"), "id": own})
        if trajectory.tools:
            losses["tool schemas"] += 1
        if trajectory.reward:
            losses["the reward"] += 1
        out += [{"type": "message", "message": _message(trajectory, n, n.id in shared, losses)} for n in path]
    return out


def _message(trajectory: Trajectory, node: Node, shared: bool, losses: Losses) -> dict[str, Any]:
    message = node.message
    out: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "tool" and message.call_id:
        out["toolCallId"] = message.call_id
    if message.role == "assistant":
        if thoughts := spoken(message):
            out["reasoningContent"] = thoughts
        if message.calls:
            out["toolCalls"] = [
                {"id": c.id, "function": {"name": c.name, "arguments": wire(c, losses)}} for c in message.calls
            ]
        if trajectory.model:
            out["model"] = trajectory.model
        if shared or not node.sampled:
            losses["which turns the model did not write in this run"] += 1
        if node.token_ids is not None:
            losses["token ids and log-probabilities"] += 1
    if node.time is not None:
        out["timestamp"] = datetime.fromtimestamp(node.time, UTC).isoformat()
    if message.is_error:
        losses["which results are errors"] += 1
    if message.origin:
        losses["who wrote a message in another's name"] += 1
    return out
