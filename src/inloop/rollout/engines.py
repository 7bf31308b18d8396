"""From names on the command line to an engine: one place that all stages which sample go through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from inloop.engine.models import SMOLLM2, resolve_model
from inloop.errors import ConfigError
from inloop.tasks.task import Task

Kind = Literal["embedded", "vllm", "chat", "scripted", "expert"]


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    kind: Kind = "embedded"
    model: str = SMOLLM2
    """A model's name or folder; scripted: the file of replies; chat: the name that the API knows."""
    url: str = ""
    """vllm, chat: where the server is; vllm without one launches its own."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    threads: int = 1
    """embedded: OpenMP threads. More than one stalls at barriers whenever another process runs."""
    max_model_len: int = 0
    """0 is what the model holds."""
    slots: int = 32
    """embedded: conversations that keep their cache at once."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    engine: Any
    """Picklable: a copy in another process talks to the same engine."""
    tokenizer: str
    """Folder; '' where the engine speaks messages."""
    close: Callable[[], None]


def open_engine(config: EngineConfig, tasks: Sequence[Task] = ()) -> Opened:
    """Start or attach to the engine that `config` names. Raises InloopError for a model that can't be had."""
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
    return Opened(engine=engine, tokenizer=str(folder), close=engine.close)


_OPEN: dict[str, Callable[[EngineConfig, Sequence[Task]], Opened]] = {"embedded": _embedded}
