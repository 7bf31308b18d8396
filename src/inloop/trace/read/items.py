"""Items of OpenAI's Responses API, as Codex and mini-swe-agent record them."""

from __future__ import annotations

import json
from typing import Any

from inloop.trace.read.build import call, kind_of, text_of, thinking
from inloop.trace.read.messages import parts_of
from inloop.trace.read.place import Place
from inloop.types import Call, Part, Thinking

OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
HOSTED = ("web_search_call", "image_generation_call", "file_search_call", "code_interpreter_call", "tool_search_call")


def item_parts(item: dict[str, Any], place: Place) -> list[Part]:
    """What the model wrote in one output item; results and messages of others are not handled here."""
    kind = item.get("type")
    if kind == "message":
        return parts_of(item.get("content"), place)
    if kind == "reasoning":
        return [reasoning(item, place)]
    if kind in CALLS:
        return [item_call(item)]
    place.block(f"hosted call {kind}" if kind in HOSTED else f"unknown item {kind_of(item)}")
    return []


def reasoning(item: dict[str, Any], place: Place) -> Thinking:
    """The thought itself, else its summary: then the trace does not hold what the model thought."""
    if item.get("content"):
        return thinking(text_of(item["content"], place))
    return thinking(text_of(item.get("summary"), place), hidden=True)


def item_call(item: dict[str, Any]) -> Call:
    call_id = item.get("call_id") or item.get("id")
    if item["type"] == "custom_tool_call":
        raw = item.get("input")
        raw = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
        return Call(id=str(call_id or ""), name=str(item.get("name") or ""), arguments={"input": raw}, raw=raw)
    if item["type"] == "local_shell_call":
        return call(call_id, "local_shell", item.get("action"))
    return call(call_id, item.get("name"), item.get("arguments"))


def output_text(item: dict[str, Any], place: Place) -> tuple[str, bool]:
    """(text, is an error) of a result item: a string, an object with content, or a list of items."""
    output = item.get("output")
    if isinstance(output, dict):
        failed = output.get("success") is False
        content = next((output[k] for k in ("content", "output", "body") if k in output), None)
        return text_of(json.dumps(output, ensure_ascii=False) if content is None else content, place), failed
    return text_of(output, place), False
