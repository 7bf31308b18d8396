"""Fixed replies behind the engine's two protocols: for tests, oracles and baselines."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from inloop.engine.base import ChatReply, Completion, ContextFull, EngineInfo, Sampling
from inloop.errors import EngineFault
from inloop.types import Message, message

Script = Sequence[str] | Callable[[int, str], str]
"""Replies in order, or what to say in a turn (from 0), given the whole prompt as text."""


def say(script: Script, turn: int, prompt: str) -> str:
    """Raises EngineFault when the script has nothing left to say."""
    if callable(script):
        return script(turn, prompt)
    if turn >= len(script):
        raise EngineFault(f"the script has {len(script)} replies; turn {turn + 1} was asked for")
    return script[turn]


class ScriptedEngine:
    """Token form. Each conversation hears the script from its start; every token has probability 1."""

    def __init__(self, script: Script, tokenizer: Any, *, max_model_len: int = 8192) -> None:
        self.script, self.tokenizer, self.max_model_len = script, tokenizer, max_model_len
        self._turns: Counter[str | None] = Counter()
        self._lock = threading.Lock()
        self._version = 0

    def info(self) -> EngineInfo:
        return EngineInfo(
            model="scripted",
            max_model_len=self.max_model_len,
            dtype="none",
            weight_version=self._version,
            eos_token_ids=(self.tokenizer.eos_token_id,),
        )

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling, *, conversation: str | None = None) -> Completion:
        if len(prompt_ids) >= self.max_model_len:
            raise ContextFull(len(prompt_ids), self.max_model_len)
        with self._lock:
            turn = self._turns[conversation]
            self._turns[conversation] += 1
        text = say(self.script, turn, self.tokenizer.decode(list(prompt_ids)))
        ids = [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]
        most = min(sampling.max_tokens, self.max_model_len - len(prompt_ids))
        return Completion(
            token_ids=ids[:most],
            logprobs=[0.0] * len(ids[:most]),
            finish="stop" if len(ids) <= most else "length",
            weight_version=self._version,
            prompt_tokens_computed=len(prompt_ids),
        )

    def forget(self, conversation: str) -> None:
        with self._lock:
            self._turns.pop(conversation, None)

    def load_weights(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """There are none; the version is kept, so that a trainer's hand-over can be rehearsed."""
        for _ in weights:
            pass
        self._version = version

    def load_adapter(self, folder: Path, version: int) -> None:
        self._version = version

    def close(self) -> None:
        return None


class ScriptedChat:
    """Message form: the turn is the number of assistant messages so far, so it holds no state.

    A reply that is a Message (with calls, say) is given as it is."""

    def __init__(self, script: Script | Sequence[str | Message]) -> None:
        self.script = script

    def info(self) -> EngineInfo:
        return EngineInfo(
            model="scripted", max_model_len=0, dtype="none", weight_version=0, logprobs_mode="none", trainable=False
        )

    def chat(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], sampling: Sampling) -> ChatReply:
        turn = sum(m.role == "assistant" for m in messages)
        if not callable(self.script) and turn < len(self.script):
            reply = self.script[turn]
            if isinstance(reply, Message):
                return ChatReply(message=reply, finish="tool_calls" if reply.calls else "stop")
        text = say(self.script, turn, "\n".join(m.text for m in messages))  # type: ignore[arg-type]
        return ChatReply(message=message("assistant", text), finish="stop")

    def close(self) -> None:
        return None
