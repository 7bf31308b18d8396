"""Engines over small real models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine.tiny import make_model, tokenizer
from transformers import AutoModelForCausalLM

from inloop.engine.embedded import EmbeddedEngine


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Any:
    return tokenizer()


@pytest.fixture(scope="session")
def plain(tiny: Path) -> Any:
    """transformers' own forward of the tiny model."""
    return AutoModelForCausalLM.from_pretrained(tiny).eval()


@pytest.fixture(scope="session")
def shared_engine(tiny: Path) -> Iterator[EmbeddedEngine]:
    """One process for the tests that leave its weights alone."""
    with EmbeddedEngine.start(tiny, dtype="float32", slots=8) as engine:
        yield engine


@pytest.fixture(scope="session")
def spare_engine(tiny: Path) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine.start(tiny, dtype="float32", slots=4) as engine:
        yield engine


@pytest.fixture
def changeable(spare_engine: EmbeddedEngine, plain: Any) -> EmbeddedEngine:
    """One process for the tests that change weights, each from the base weights at version 0."""
    spare_engine.load_weights(plain.named_parameters(), 0)
    return spare_engine


@pytest.fixture
def start(tiny: Path) -> Iterator[Callable[..., EmbeddedEngine]]:
    """Starts engines that end with the test."""
    started: list[EmbeddedEngine] = []

    def make(model: Path = tiny, **kw: Any) -> EmbeddedEngine:
        engine = EmbeddedEngine.start(model, **{"dtype": "float32", "slots": 4, **kw})
        started.append(engine)
        return engine

    yield make
    for engine in started:
        engine.close()
