"""Chat messages with tools: one row a context; turns that another row trains have weight 0."""

from __future__ import annotations

from typing import Any

from inloop.trace.trajectory import Node, Trajectory
from inloop.trace.write.losses import Losses, contexts, note_common, wire
from inloop.types import Image, Message, Thinking

NAME = "chat"


def write(trajectory: Trajectory, losses: Losses) -> list[dict[str, Any]]:
    rows = []
    for number, (path, shared) in enumerate(contexts(trajectory, losses)):
        note_common(path, losses)
        row: dict[str, Any] = {"id": trajectory.id if not number else f"{trajectory.id}#{number}"}
        row["messages"] = [_message(n, n.id in shared, losses) for n in path]
        if trajectory.tools:
            row["tools"] = trajectory.tools
        for key, value in (("model", trajectory.model), ("task_id", trajectory.task_id)):
            if value:
                row[key] = value
        if trajectory.reward and trajectory.reward.value is not None:
            row["resolved"] = trajectory.reward.value
        rows.append(row)
    return rows


def _message(node: Node, shared: bool, losses: Losses) -> dict[str, Any]:
    message = node.message
    out: dict[str, Any] = {
        "role": "system" if message.origin == "developer" else message.role,
        "content": content(message),
    }
    if message.role == "tool":
        out["tool_call_id"] = message.call_id
        if message.is_error:
            out["is_error"] = True
    elif message.role == "assistant":
        if thoughts := spoken(message):
            out["reasoning_content"] = thoughts
        if message.calls:
            out["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": wire(c, losses)}}
                for c in message.calls
            ]
        if shared or not node.sampled:
            out["weight"] = 0
        if node.token_ids is not None:
            losses["token ids and log-probabilities"] += 1
    if message.origin:
        losses["who wrote a message in another's name"] += 1
    return out


def content(message: Message) -> Any:
    """A string, or blocks where there is an image."""
    if not any(isinstance(p, Image) for p in message.parts):
        return message.text
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Image):
            blocks.append(
                {"type": "image_url", "image_url": {"url": f"sha256:{part.sha256}", "media_type": part.media_type}}
            )
        elif not isinstance(part, Thinking) and (text := getattr(part, "text", "")):
            blocks.append({"type": "text", "text": text})
    return blocks


def spoken(message: Message) -> str:
    return "\n".join(p.text for p in message.parts if isinstance(p, Thinking) and not p.hidden)
