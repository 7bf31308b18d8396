"""A tokenizer small enough to train here, under the real chat templates of known models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.tiny_task import write_task

from inloop.sandbox.base import Sandbox, SandboxSpec
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.task import Task

SPECIAL = [
    "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|begin_of_text|>", "<end_of_turn>", "<start_of_turn>",
    "<|end|>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>",
]  # fmt: skip
MARKERS = ["<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>", "</tool_response>"]


@pytest.fixture
def tokenizer(tiny_model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model)


@pytest.fixture
def templated(tiny_model: Path) -> Callable[[str], Any]:
    """A tokenizer with the chat template that a known model ships."""
    from transformers import AutoTokenizer
    from trl import chat_template_utils

    def make(name: str) -> Any:
        made = AutoTokenizer.from_pretrained(tiny_model)
        made.chat_template = getattr(chat_template_utils, f"{name}_chat_template")
        made.add_tokens(SPECIAL, special_tokens=True)
        made.add_tokens(MARKERS)
        return made

    return make


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return write_task(tmp_path)


@pytest.fixture
def sandbox(task: Task) -> Iterator[Sandbox]:
    opened = Bubblewrap().open(SandboxSpec(workspace=task.workspace, limits=task.limits, owner="test"))
    yield opened
    opened.close()
