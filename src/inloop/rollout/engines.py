"""From names on the command line to an engine: one place that all stages which sample go through."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from inloop.engine.models import SMOLLM2, resolve_model
from inloop.errors import ConfigError
from inloop.rollout.expert import Expert
from inloop.tasks.task import Task

Kind = Literal["embedded", "vllm", "chat", "scripted", "expert"]


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    kind: Kind = "embedded"
    model: str = SMOLLM2
    """A model's name or folder; chat: the name that the API knows; scripted: a JSON file, a list of replies."""
    url: str = ""
    """vllm, chat: where the server is. vllm without one launches its own; chat without one asks OpenAI."""
    key_variable: str = "OPENAI_API_KEY"
    """chat: the environment variable that holds the key."""
    python: str = ""
    """vllm: the interpreter of the environment that holds vLLM, for a server of our own."""
    tokenizer: str = ""
    """A model's name or folder, where it is not `model`; scripted: makes it speak tokens."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    threads: int = 1
    """embedded: OpenMP threads. More than one stalls at barriers whenever another process runs."""
    max_model_len: int = 0
    """embedded: 0 is what the model holds."""
    slots: int = 32
    """embedded: conversations that keep their cache at once."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    engine: Any
    tokenizer: str
    """Folder; '' where the engine speaks messages."""
    shared: Any
    """Picklable: what another process makes the same engine of, or a client of it."""
    close: Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Again:
    """An engine without state of its own: another process opens it anew."""

    config: EngineConfig
    tasks: tuple[Task, ...]

    def open(self) -> Any:
        return open_engine(self.config, self.tasks).engine


def open_engine(config: EngineConfig, tasks: Sequence[Task] = ()) -> Opened:
    """Start or attach to the engine that `config` names; `tasks` are for the expert, who knows their solutions.

    Raises InloopError for a model that can't be had."""
    if config.kind not in _OPEN:
        raise ConfigError(f"unknown engine {config.kind!r}", fix=f"known: {', '.join(_OPEN)}")
    return _OPEN[config.kind](config, tasks)


def _embedded(config: EngineConfig, tasks: Sequence[Task]) -> Opened:
    from inloop.engine.embedded import EmbeddedEngine

    folder = resolve_model(config.model)
    engine = EmbeddedEngine.start(
        config.model,
        dtype=config.dtype,
        threads=config.threads,
        max_model_len=config.max_model_len or None,
        slots=config.slots,
    )
    return Opened(engine=engine, tokenizer=str(folder), shared=engine, close=engine.close)


def _vllm(config: EngineConfig, tasks: Sequence[Task]) -> Opened:
    from inloop.engine.vllm import VllmEngine

    folder = resolve_model(config.tokenizer or config.model)
    if config.url:
        engine = VllmEngine.attach(config.url)
    elif config.python:
        engine = VllmEngine.launch(resolve_model(config.model), python=config.python)
    else:
        raise ConfigError(
            "the vllm engine has neither a url nor a python", fix="give --url, or --set engine.python=..."
        )
    return Opened(engine=engine, tokenizer=str(folder), shared=engine, close=engine.close)


def _chat(config: EngineConfig, tasks: Sequence[Task]) -> Opened:
    from inloop.engine.chat import ChatApi

    key = config.key_variable
    engine = (
        ChatApi(config.model, url=config.url, key_variable=key)
        if config.url
        else ChatApi(config.model, key_variable=key)
    )
    return Opened(engine=engine, tokenizer="", shared=Again(config=config, tasks=()), close=engine.close)


def _scripted(config: EngineConfig, tasks: Sequence[Task]) -> Opened:
    from inloop.engine.scripted import ScriptedChat, ScriptedEngine

    script, again = _read_script(Path(config.model)), Again(config=config, tasks=())
    if not config.tokenizer:
        chat = ScriptedChat(script)
        return Opened(engine=chat, tokenizer="", shared=again, close=chat.close)
    from transformers import AutoTokenizer

    folder = str(resolve_model(config.tokenizer))
    engine = ScriptedEngine(script, AutoTokenizer.from_pretrained(folder))
    return Opened(engine=engine, tokenizer=folder, shared=again, close=engine.close)


def _read_script(path: Path) -> list[str]:
    try:
        replies = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: no script of replies ({error})", fix="--model FILE: a JSON list of texts") from None
    if not isinstance(replies, list) or not all(isinstance(r, str) for r in replies):
        raise ConfigError(f"{path}: not a JSON list of texts")
    return replies


def _expert(config: EngineConfig, tasks: Sequence[Task]) -> Opened:
    engine = Expert(tasks)
    return Opened(engine=engine, tokenizer="", shared=Again(config=config, tasks=tuple(tasks)), close=engine.close)


_OPEN: dict[str, Callable[[EngineConfig, Sequence[Task]], Opened]] = {
    "embedded": _embedded,
    "vllm": _vllm,
    "chat": _chat,
    "scripted": _scripted,
    "expert": _expert,
}
