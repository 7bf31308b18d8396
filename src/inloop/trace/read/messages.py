"""One chat message of the OpenAI, TRL, Anthropic and similar wires -> parts. Shared by every chat-shaped reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from inloop.trace.read.build import call, kind_of, thinking, words
from inloop.trace.read.place import Bad, Place, image_of
from inloop.types import Call, Message, Part, Role, Text

ROLES: Final[dict[str, Role]] = {
    "system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "gpt": "assistant", "model": "assistant", "bot": "assistant", "tool": "tool",
    "function": "tool", "ipython": "tool", "observation": "tool", "environment": "tool",
}  # fmt: skip
_TEXT = ("text", "input_text", "output_text", "refusal")
_IMAGES = ("image", "image_url", "input_image")
_REASONING = frozenset(("reasoning_content", "reasoning", "thinking", "reasoningContent"))
_IGNORED = ("cache_control", "fallback")


def role_of(value: Any) -> Role:
    """Raises Bad for a role that nobody knows."""
    if isinstance(value, str) and value in ROLES:
        return ROLES[value]
    try:
        return ROLES[str(value).lower()]
    except KeyError:
        raise Bad(f"unknown role {str(value)[:40]!r}") from None


def parts_of(content: Any, place: Place) -> list[Part]:
    """Text, thinking, images and `tool_use` blocks in their order; what is unknown is counted."""
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    if content is None:
        return []
    blocks = content if isinstance(content, list) else [content]
    out: list[Part] = []
    for block in blocks:
        part = _part(block, place)
        if part is not None:
            out.append(part)
    return out


def _part(block: Any, place: Place) -> Part | None:
    if isinstance(block, str):
        return Text(text=block)
    if not isinstance(block, dict):
        place.block(f"unknown block {kind_of(block)}")
        return None
    kind = block.get("type")
    if kind in _TEXT or (kind is None and isinstance(block.get("text"), str)):
        return Text(text=str(block.get("text") or block.get("refusal") or ""))
    if kind in ("thinking", "reasoning"):
        return thinking(block.get("thinking") or block.get("reasoning") or block.get("text"))
    if kind == "redacted_thinking":
        return thinking("", hidden=True)
    if kind in ("tool_use", "toolCall", "tool_call", "server_tool_use"):
        arguments = next((block[k] for k in ("input", "arguments") if k in block), None)
        return call(block.get("id"), block.get("name"), arguments)
    if kind in _IMAGES:
        return image_of(block, place)
    if kind not in _IGNORED:
        place.block(f"unknown block {kind_of(block)}")
    return None


def calls_of(message: dict[str, Any], place: Place) -> list[Call]:
    """`tool_calls`, as objects or JSON text, and the older `function_call`."""
    value = message.get("tool_calls") or message.get("toolCalls") or []
    if not value and "function_call" not in message:
        return []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            place.block("tool_calls are not JSON")
            value = []
    old = message.get("function_call")
    out = []
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            place.block("a tool call is not an object")
            continue
        function = item.get("function")
        if isinstance(function, str):
            function = {"name": function, "arguments": item.get("arguments")}
        function = function if isinstance(function, dict) else item
        out.append(call(item.get("id") or item.get("call_id"), function.get("name"), function.get("arguments")))
    if isinstance(old, dict) and old.get("name"):
        out.append(call(None, old["name"], old.get("arguments")))
    return out


def reasoning_of(message: dict[str, Any]) -> tuple[Part, ...]:
    for key in _REASONING & message.keys():
        value = message[key]
        if isinstance(value, str) and value:
            return (thinking(value),)
    return ()


def assistant(message: dict[str, Any], place: Place) -> Message:
    """Thinking first, then content, then calls: the order in which chat models write them."""
    parts = [*reasoning_of(message), *parts_of(message.get("content"), place), *calls_of(message, place)]
    return Message(role="assistant", parts=tuple(parts))


def with_ids(parts: tuple[Part, ...], named: Callable[[str], str]) -> tuple[Part, ...]:
    """Each call under the id that `named` gives it."""
    return tuple(_under(p, named(p.id)) if isinstance(p, Call) and not p.embedded else p for p in parts)


def _under(call: Call, name: str) -> Call:
    return call if call.id == name else replace(call, id=name)


def said(role: Role, content: Any, place: Place, **kw: Any) -> Message:
    parts = parts_of(content, place)
    return Message(role=role, parts=tuple(parts) or words(""), **kw)
