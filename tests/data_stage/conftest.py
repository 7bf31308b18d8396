"""The shared tiny model's tokenizer, and the text dialect over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from data_stage.episodes import TOOLS, capture, episode

from inloop.harness.text import TextDialect
from inloop.trace.trajectory import Trajectory


@pytest.fixture(scope="session")
def tokenizer(tiny_model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model)


@pytest.fixture(scope="session")
def dialect(tokenizer: Any) -> TextDialect:
    return TextDialect(tokenizer, TOOLS)


@pytest.fixture
def captured(dialect: TextDialect) -> Callable[..., Trajectory]:
    return lambda *args, **kw: capture(episode(*args, **kw), dialect)
