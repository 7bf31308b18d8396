"""Chat messages of the wire to token ids by the model's own template, and sampled ids back to a message."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

from inloop.engine.bodies import ApiError

TOOL_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


class ChatFormat:
    """The tokenizer of a served model and what its chat template can do."""

    def __init__(self, folder: Path, chat_template: str | None = None) -> None:
        from transformers import AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        if chat_template is not None:
            self.tokenizer.chat_template = chat_template
        self.parses = _add_parser(self.tokenizer)

    @property
    def stop_id(self) -> int:
        """What ends an assistant's turn."""
        stop: int = self.tokenizer.eos_token_id
        return stop

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: list[int], *, keep_special: bool = False) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=not keep_special)
        return text

    def render(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, *, open_turn: bool, **options: Any
    ) -> list[int]:
        """The ids that the model sees. Raises ApiError for messages that the template can't take."""
        if not self.tokenizer.chat_template:
            raise ApiError(400, "this model has no chat template: use /v1/completions, or serve with --chat-template")
        plain = [plain_message(m) for m in messages]
        try:
            ids: list[int] = self.tokenizer.apply_chat_template(
                plain, tools=tools, add_generation_prompt=open_turn, return_dict=False, tokenize=True, **options
            )
        except Exception as error:  # templates raise their own kinds, by way of jinja
            raise ApiError(400, f"the chat template refuses these messages: {error}") from error
        return ids

    def message(self, prompt: list[int], ids: list[int], tools: list[dict[str, Any]] | None) -> dict[str, Any]:
        """The assistant message in the OpenAI shape: content, reasoning, calls."""
        if self.parses:
            from trl.chat_template_utils import parse_response

            parsed = parse_response(self.tokenizer, ids, prefix=prompt, tools=tools)
        else:
            parsed = _parse_text(self.decode(ids)) if tools else {"content": self.decode(ids)}
        out: dict[str, Any] = {"role": "assistant", "content": parsed.get("content") or None}
        if parsed.get("reasoning_content"):
            out["reasoning_content"] = out["reasoning"] = parsed["reasoning_content"]
        if tools and parsed.get("tool_calls"):
            out["tool_calls"] = [wire_call(c["function"]) for c in parsed["tool_calls"]]
        elif out["content"] is None:
            out["content"] = ""
        return out

    def remember(self, prompt: list[int], ids: list[int], message: dict[str, Any]) -> None:
        """Told of every answer, for formats that keep sampled ids; this one does not."""


def _add_parser(tokenizer: Any) -> bool:
    """Whether the chat template is one whose answers TRL can parse."""
    from trl.chat_template_utils import add_response_schema

    if tokenizer.chat_template is None:
        return False
    try:
        add_response_schema(tokenizer)
    except ValueError:
        return False
    return True


def plain_message(message: dict[str, Any]) -> dict[str, Any]:
    out = {k: v for k, v in message.items() if v is not None}
    if not isinstance(out.get("role"), str):
        raise ApiError(400, "each message needs a role")
    out["role"] = "system" if out["role"] == "developer" else out["role"]
    out["content"] = _text(out.get("content"))
    if "reasoning" in out:
        out["reasoning_content"] = out.pop("reasoning")
    if out.get("tool_calls"):
        out["tool_calls"] = [_with_arguments(c) for c in out["tool_calls"]]
    return out


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        if not isinstance(part, dict) or part.get("type") != "text":
            raise ApiError(400, "message content has to be text")
    return "".join(str(part.get("text", "")) for part in parts)


def _with_arguments(call: Any) -> dict[str, Any]:
    """Templates want arguments as an object; the wire has them as a string."""
    try:
        function = call["function"]
        arguments = function.get("arguments") or "{}"
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
        return {**call, "function": {**function, "arguments": parsed}}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ApiError(400, f"a tool call that can't be read: {error!r}") from error


def _parse_text(text: str) -> dict[str, Any]:
    """`<tool_call>` blocks of JSON; what does not parse stays text."""
    calls = []
    for block in TOOL_CALL.findall(text):
        try:
            value = json.loads(block)
            calls.append({"function": {"name": str(value["name"]), "arguments": value.get("arguments") or {}}})
        except (ValueError, KeyError, TypeError):
            return {"content": text}
    return {"content": TOOL_CALL.sub("", text).strip() if calls else text, "tool_calls": calls}


def wire_call(function: dict[str, Any]) -> dict[str, Any]:
    arguments = function.get("arguments")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    name = f"call_{uuid.uuid4().hex[:12]}"
    return {"id": name, "type": "function", "function": {"name": function["name"], "arguments": raw}}
