"""Anthropic Messages: a request body; `system` apart, `tools` with `input_schema`, results as user blocks."""

from __future__ import annotations

from typing import Any

from inloop.trace.read.build import tools_of
from inloop.trace.read.place import Bad, Place
from inloop.trace.read.talk import Talk
from inloop.trace.trajectory import Trajectory

NAME = "anthropic"
_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")


def sniff(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list) or not row["messages"]:
        return False
    tools = row.get("tools")
    if isinstance(tools, list) and tools and isinstance(tools[0], dict) and "input_schema" in tools[0]:
        return True
    if "system" in row and not any(isinstance(m, dict) and m.get("role") == "system" for m in row["messages"]):
        return True
    return any(_has_blocks(m) for m in row["messages"])


def _has_blocks(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(isinstance(b, dict) and b.get("type") in _BLOCKS for b in content)


def read(row: dict[str, Any], place: Place) -> Trajectory:
    """A `response` beside the request is the newest turn."""
    talk = Talk(NAME, place, name=str(row.get("id") or ""))
    if not row["messages"]:
        raise Bad("no messages")
    if row.get("system"):
        talk.hear({"role": "system", "content": row["system"]})
    talk.feed(row["messages"])
    response = row.get("response")
    if isinstance(response, dict) and response.get("role") == "assistant":
        talk.hear(response)
    trajectory = talk.done()
    trajectory.tools = tools_of(row.get("tools"), place)
    trajectory.model = row["model"] if isinstance(row.get("model"), str) else None
    missing = [w for w, has in (("system prompt", row.get("system")), ("tools", trajectory.tools)) if not has]
    if missing:
        trajectory.meta["missing"] = missing
    return trajectory
