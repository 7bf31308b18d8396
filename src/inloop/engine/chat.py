"""Any OpenAI-compatible API in message form: teachers and baselines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any

import openai

from inloop.engine.base import ChatReply, ContextFull, EngineInfo, Sampling
from inloop.errors import EngineFault, InloopError
from inloop.types import Call, Image, Message, Part, Text, Thinking


class ChatApi:
    """The `openai` client does the transport, with its retries; the key comes from the environment."""

    def __init__(
        self,
        model: str,
        *,
        url: str = "https://api.openai.com/v1",
        key_variable: str = "OPENAI_API_KEY",
        retries: int = 4,
        timeout: float = 600.0,
        max_tokens_field: str = "max_tokens",
    ) -> None:
        self.model, self.url, self._key_variable = model, url, key_variable
        self._max_tokens_field = max_tokens_field
        key = os.environ.get(key_variable)
        if not key and "api.openai.com" in url:
            raise InloopError(f"${key_variable} is not set", fix=f"export {key_variable}=...")
        self._client = openai.OpenAI(base_url=url, api_key=key or "none", max_retries=retries, timeout=timeout)

    def info(self) -> EngineInfo:
        """`max_model_len` 0: the API does not say."""
        return EngineInfo(
            model=self.model,
            max_model_len=0,
            dtype="unknown",
            weight_version=0,
            logprobs_mode="none",
            trainable=False,
            meta={"url": self.url},
        )

    def chat(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], sampling: Sampling) -> ChatReply:
        """Raises ContextFull, InloopError for what the caller can mend, EngineFault for the rest."""
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [to_wire(m) for m in messages],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self._max_tokens_field: sampling.max_tokens,
        }
        if tools:
            request["tools"] = list(tools)
        if sampling.seed is not None:
            request["seed"] = sampling.seed
        began = time.monotonic()
        try:
            got = self._client.chat.completions.create(**request)
        except openai.OpenAIError as error:
            raise self._as_ours(error) from error
        usage = got.usage.model_dump() if got.usage else {}
        return ChatReply(
            message=from_wire(got.choices[0].message.model_dump()),
            finish=got.choices[0].finish_reason or "",
            usage={k: v for k, v in usage.items() if isinstance(v, int)},
            seconds=time.monotonic() - began,
        )

    def close(self) -> None:
        self._client.close()

    def _as_ours(self, error: openai.OpenAIError) -> Exception:
        said = str(getattr(error, "message", error))
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return InloopError(f"{self.url} refuses the key", fix=f"check ${self._key_variable}")
        if isinstance(error, openai.NotFoundError):
            return InloopError(f"{self.url}: {said}", fix="check the model's name and the address")
        if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
            if error.code == "context_length_exceeded" or "maximum context length" in said:
                return ContextFull(0, 0)
            return InloopError(f"{self.url} refuses the request: {said}")
        return EngineFault(f"{self.url}: {type(error).__name__}: {said}")


def to_wire(message: Message) -> dict[str, Any]:
    """Our message in the OpenAI shape. Thinking is not sent back: APIs refuse or ignore it."""
    if any(isinstance(p, Image) for p in message.parts):
        raise InloopError("images can't be sent to a chat API", fix="use tasks without images")
    out: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "tool":
        out["tool_call_id"] = message.call_id or ""
    if message.calls:
        out["content"] = message.text or None
        out["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.raw}} for c in message.calls
        ]
    return out


def from_wire(message: dict[str, Any]) -> Message:
    parts: list[Part] = []
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str) and thought:
        parts.append(Thinking(text=thought))
    if message.get("content"):
        parts.append(Text(text=message["content"]))
    parts += [_call(c) for c in message.get("tool_calls") or []]
    return Message(role="assistant", parts=tuple(parts))


def _call(call: dict[str, Any]) -> Call:
    function = call.get("function") or {}
    raw = function.get("arguments") or ""
    try:
        arguments = json.loads(raw)
    except ValueError:
        arguments = None
    return Call(
        id=call.get("id") or "",
        name=function.get("name") or "",
        arguments=arguments if isinstance(arguments, dict) else None,
        raw=raw,
    )
