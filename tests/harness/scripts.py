"""Scripted engines that repeat their last reply and remember what they were asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inloop.engine.base import ChatReply, Completion, Sampling
from inloop.engine.scripted import Script, ScriptedChat, ScriptedEngine
from inloop.types import Message


def repeating(replies: Sequence[str]) -> Script:
    return lambda turn, prompt: replies[min(turn, len(replies) - 1)]


class RecordedChat(ScriptedChat):
    def __init__(self, replies: Sequence[str]) -> None:
        super().__init__(repeating(replies))
        self.asked: list[list[Message]] = []

    def chat(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], sampling: Sampling) -> ChatReply:
        self.asked.append(list(messages))
        return super().chat(messages, tools, sampling)


class RecordedTokens(ScriptedEngine):
    def __init__(self, tokenizer: Any, replies: Sequence[str], *, max_model_len: int = 8192) -> None:
        super().__init__(repeating(replies), tokenizer, max_model_len=max_model_len)
        self.prompts: list[list[int]] = []
        self.samplings: list[Sampling] = []
        self.forgotten: list[str] = []

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling, *, conversation: str | None = None) -> Completion:
        self.prompts.append(list(prompt_ids))
        self.samplings.append(sampling)
        return super().generate(prompt_ids, sampling, conversation=conversation)

    def forget(self, conversation: str) -> None:
        self.forgotten.append(conversation)
        super().forget(conversation)
