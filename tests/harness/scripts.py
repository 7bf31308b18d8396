"""Engines that reply from a list: real implementations of both protocols, for tests of what surrounds a model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from inloop.engine.base import ChatReply, Completion, EngineInfo, Sampling
from inloop.types import Message, message

Replies = Sequence[str] | Callable[[int], str]
"""By turn; a list's last reply is repeated."""


def reply(replies: Replies, turn: int) -> str:
    return replies(turn) if callable(replies) else replies[min(turn, len(replies) - 1)]


class ScriptedChat:
    def __init__(self, replies: Replies) -> None:
        self.replies = replies
        self.asked: list[list[Message]] = []

    def info(self) -> EngineInfo:
        return EngineInfo(model="script", max_model_len=8192, dtype="none", weight_version=0, trainable=False)

    def chat(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], sampling: Sampling) -> ChatReply:
        self.asked.append(list(messages))
        turn = sum(m.role == "assistant" for m in messages)
        text = reply(self.replies, turn)
        return ChatReply(message=message("assistant", text), finish="stop", usage={"completion_tokens": len(text)})

    def close(self) -> None:
        pass


class ScriptedTokens:
    """Writes its replies as ids; stops at `max_tokens` as a model would."""

    def __init__(self, tokenizer: Any, replies: Replies, *, max_model_len: int = 2048) -> None:
        self.tokenizer, self.replies, self.max_model_len = tokenizer, replies, max_model_len
        self.prompts: dict[str, list[list[int]]] = {}
        self.forgotten: list[str] = []
        self.samplings: list[Sampling] = []
        self._lock = threading.Lock()

    def info(self) -> EngineInfo:
        return EngineInfo(model="script", max_model_len=self.max_model_len, dtype="none", weight_version=3)

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling, *, conversation: str | None = None) -> Completion:
        with self._lock:
            asked = self.prompts.setdefault(conversation or "", [])
            asked.append(list(prompt_ids))
            self.samplings.append(sampling)
            text = reply(self.replies, len(asked) - 1)
            ids = [*self.tokenizer.encode(text, add_special_tokens=False), sampling.stop_token_ids[0]]
        cut = ids[: sampling.max_tokens]
        return Completion(
            token_ids=cut,
            logprobs=[-0.5] * len(cut),
            finish="stop" if len(cut) == len(ids) else "length",
            weight_version=3,
        )

    def forget(self, conversation: str) -> None:
        self.forgotten.append(conversation)

    def close(self) -> None:
        pass
