"""The Responses API as chat: what its requests hold, and its items out of a chat message."""

from __future__ import annotations

import secrets
import time
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from inloop.engine.bodies import ApiError, ChatBody

Item = dict[str, Any]


class ResponsesBody(BaseModel):
    model_config = ConfigDict(extra="allow")

    model: str = ""
    input: str | list[Item]
    instructions: str | None = None
    tools: list[Item] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    max_output_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=100)
    top_p: float | None = Field(None, gt=0, le=1)
    stream: bool = False
    store: bool | None = None
    previous_response_id: str | None = None
    text: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    seed: int | None = None

    def as_chat(self, before: list[Item]) -> ChatBody:
        """`before`: the chat messages of the response that this one goes on from. Raises ApiError."""
        shape = (self.text or {}).get("format") or {"type": "text"}
        if shape != {"type": "text"}:
            raise ApiError(400, "text.format is supported as text only")
        head = [{"role": "system", "content": self.instructions}] if self.instructions else []
        given = [{"role": "user", "content": self.input}] if isinstance(self.input, str) else chats(self.input)
        messages = head + joined([*before, *given])
        if not messages:
            raise ApiError(400, "input: it is empty")
        chat = {
            "model": self.model,
            "messages": messages,
            "tools": [_chat_tool(t) for t in self.tools] if self.tools else None,
            "tool_choice": self.tool_choice,
            "max_completion_tokens": self.max_output_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "stream": self.stream,
        }
        return ChatBody.model_validate(chat)


def _chat_tool(tool: Item) -> Item:
    if tool.get("type") != "function" or not isinstance(tool.get("name"), str):
        raise ApiError(400, f"tools: only functions are supported, not {tool.get('type')!r}")
    kept = {k: tool[k] for k in ("name", "description", "parameters") if tool.get(k) is not None}
    return {"type": "function", "function": kept}


def chats(items: list[Item]) -> list[Item]:
    return [m for item in items if (m := _chat(item)) is not None]


def _chat(item: Item) -> Item | None:
    kind = item.get("type") or "message"
    if kind == "reasoning":
        return None
    if kind == "message":
        return {"role": item.get("role"), "content": _text(item.get("content"))}
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments") or "{}"}
        return {"role": "assistant", "content": None, "tool_calls": [
            {"id": item.get("call_id"), "type": "function", "function": function}
        ]}  # fmt: skip
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": _text(item.get("output"))}
    raise ApiError(400, f"input: items of type {kind!r} are not supported")


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, dict) or part.get("type") not in ("input_text", "output_text", "text"):
            raise ApiError(400, "input: content has to be text")
    return "".join(str(part.get("text", "")) for part in content)


def joined(messages: list[Item]) -> list[Item]:
    """A turn's text and its calls are items of their own: together they are one message again."""
    out: list[Item] = []
    for message in messages:
        last = out[-1] if out else {}
        if message["role"] == "assistant" == last.get("role") and message.get("tool_calls"):
            calls = [*(last.get("tool_calls") or []), *message["tool_calls"]]
            out[-1] = {**last, "tool_calls": calls}
        else:
            out.append(message)
    return out


def items_of(message: Item) -> list[Item]:
    """A chat message as output items."""
    out: list[Item] = []
    if thought := message.get("reasoning_content"):
        told = [{"type": "summary_text", "text": thought}]
        out.append({"type": "reasoning", "id": _id("rs"), "summary": told})
    if message.get("content") or not message.get("tool_calls"):
        out.append(text_item(message.get("content") or ""))
    for call in message.get("tool_calls") or []:
        out.append({
            "type": "function_call", "id": _id("fc"), "call_id": call["id"], "status": "completed", **call["function"],
        })  # fmt: skip
    return out


def text_item(text: str, *, name: str = "", status: str = "completed") -> Item:
    content = [text_part(text)] if status == "completed" else []
    return {"type": "message", "id": name or _id("msg"), "role": "assistant", "status": status, "content": content}


def text_part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(12)}"


def new_response(body: ResponsesBody, model: str) -> Item:
    return {
        "id": _id("resp"), "object": "response", "created_at": int(time.time()), "status": "in_progress",
        "model": model, "output": [], "error": None, "incomplete_details": None, "usage": None,
        "instructions": body.instructions, "metadata": body.metadata or {}, "parallel_tool_calls": True,
        "previous_response_id": body.previous_response_id, "temperature": body.temperature, "top_p": body.top_p,
        "tool_choice": body.tool_choice or "auto", "tools": body.tools or [], "truncation": "disabled",
        "max_output_tokens": body.max_output_tokens, "text": {"format": {"type": "text"}},
    }  # fmt: skip


def ended(response: Item, output: list[Item], finish: str | None, asked: int, answered: int) -> Item:
    cut = finish == "length"
    return {
        **response,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": output,
        "usage": {
            "input_tokens": asked, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": answered, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked + answered,
        },
    }  # fmt: skip
