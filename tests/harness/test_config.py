from __future__ import annotations

from dataclasses import replace

import pytest

from inloop.errors import ConfigError
from inloop.harness.config import HarnessConfig


def test_plain_form_reads_back_equal() -> None:
    config = HarnessConfig(tools=("read", "submit"), sensors=("tests",), max_turns=3)
    assert HarnessConfig.from_dict(config.to_dict()) == config
    assert HarnessConfig.from_dict(config.record()) == config


@pytest.mark.parametrize(
    "change",
    [
        {"dialect": "native"}, {"tools": ("read", "submit")}, {"guides": ()}, {"guide_text": "x"},
        {"sensors": ("ruff",)}, {"max_turns": 3}, {"observation_chars": 500}, {"test_output": "full"},
        {"thinking": True}, {"max_invalid": 1},
    ],
)  # fmt: skip
def test_the_hash_follows_what_the_model_sees(change: dict[str, object]) -> None:
    assert replace(HarnessConfig(), **change).hash() != HarnessConfig().hash()  # type: ignore[arg-type]


def test_sampling_and_seconds_are_outside_the_hash() -> None:
    assert HarnessConfig(temperature=0.2, top_p=0.9, wall_seconds=5).hash() == HarnessConfig().hash()


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"max_turnz": 3}, "max_turnz"), ({"max_turns": "3"}, "max_turns"), ({"tools": ["read"]}, "submit"),
        ({"tools": ["fly", "submit"]}, "fly"), ({"tools": ["submit", "submit"]}, "twice"),
        ({"max_turns": 0}, "max_turns"), ({"dialect": "klingon"}, "dialect"), ({"sensors": ["smell"]}, "smell"),
        ({"temperature": -1.0}, "temperature"), ({"observation_chars": 3}, "observation_chars"),
    ],
)  # fmt: skip
def test_mistakes_are_named(data: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        HarnessConfig.from_dict(data)


def test_a_record_whose_hash_is_another_config_is_refused() -> None:
    with pytest.raises(ConfigError, match="hash"):
        HarnessConfig.from_dict({**HarnessConfig().record(), "max_turns": 7})
