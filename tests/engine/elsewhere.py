"""What other processes do with an engine: importable there."""

from __future__ import annotations

from inloop.engine.base import Completion, Sampling
from inloop.engine.embedded import EmbeddedEngine


def ask(engine: EmbeddedEngine, seed: int) -> Completion:
    return engine.generate([5, 6, 7], Sampling(max_tokens=8, seed=seed, ignore_eos=True))


def ask_and_close(engine: EmbeddedEngine, seed: int) -> Completion:
    """`close` here ends the connection, not the engine."""
    try:
        return ask(engine, seed)
    finally:
        engine.close()
