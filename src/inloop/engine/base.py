"""The protocols of an engine: token ids in, token ids and log-probabilities out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from inloop.types import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """Training needs 1: the trainer computes the log-probabilities of the full distribution."""
    max_tokens: int = 256
    seed: int | None = None
    stop_token_ids: tuple[int, ...] = ()
    """Besides the tokenizer's own end of turn."""
    ignore_eos: bool = False
    """Go on past the end of turn: for benchmarks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    token_ids: list[int]
    """(T,), with the stop token if there was one."""
    logprobs: list[float]
    """(T,), of the processed (temperature-scaled, full) distribution that was sampled from."""
    finish: Literal["stop", "length", "abort"]
    weight_version: int = 0
    seconds: float = 0.0
    prompt_tokens_computed: int = 0
    """Prompt tokens that were not in the conversation's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    model: str
    max_model_len: int
    dtype: str
    weight_version: int
    logprobs_mode: str = "processed_logprobs"
    eos_token_ids: tuple[int, ...] = ()
    trainable: bool = True
    """False where tokens and log-probabilities are not to be had (chat APIs)."""
    meta: dict[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """Token form. Safe to call from many threads at once; calls are batched."""

    def info(self) -> EngineInfo: ...

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling, *, conversation: str | None = None) -> Completion:
        """Continue `prompt_ids`. Calls of one `conversation` reuse its cache as far as the prefix agrees.

        Raises ContextFull when the prompt leaves no room, EngineFault when the engine is gone."""
        ...

    def forget(self, conversation: str) -> None:
        """Give back the cache of a finished conversation."""
        ...

    def load_weights(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """Swap named tensors (Hugging Face checkpoint names) in; running requests go on with the new ones."""
        ...

    def load_adapter(self, folder: Path, version: int) -> None:
        """Serve a PEFT LoRA adapter from now on."""
        ...

    def close(self) -> None: ...


class ContextFull(Exception):
    """The prompt leaves no room for an answer: an outcome of the episode, not a fault."""

    def __init__(self, prompt_tokens: int, max_model_len: int) -> None:
        super().__init__(f"{prompt_tokens} prompt tokens in a context of {max_model_len}")
        self.prompt_tokens = prompt_tokens
        self.max_model_len = max_model_len


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    message: Message
    finish: str
    usage: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


class ChatEngine(Protocol):
    """Message form: any OpenAI-compatible API. For teachers and baselines; nothing of it trains by tokens."""

    def info(self) -> EngineInfo: ...

    def chat(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], sampling: Sampling) -> ChatReply: ...

    def close(self) -> None: ...
