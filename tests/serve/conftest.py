"""Checkpoints of a tiny real model: an adapter that changes something, another one, and one in the native dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import build_tiny_model

from inloop.harness.config import HarnessConfig
from inloop.serve.server import Running, Settings, serve

TEXT = HarnessConfig(max_turns=6, max_turn_tokens=48)
NATIVE = replace(TEXT, dialect="native", tools=("read", "submit"))
"""Two tools: in letters, which is what the tiny tokenizer knows, more of them fill its context."""


def write_adapter(base: Path, folder: Path, harness: HarnessConfig = TEXT, *, seed: int = 0, step: int = 0) -> Path:
    """A LoRA checkpoint of `base` with random weights, large enough to be told from the base."""
    import warnings

    import torch
    from peft import get_peft_model

    from inloop.data.tokens import load_tokenizer
    from inloop.train.checkpoint import about, load_policy_model, save_checkpoint
    from inloop.train.lora import LoraSettings, lora_config

    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PEFT and transformers, of each other
        model = load_policy_model(base)
        model = get_peft_model(model, lora_config(model, LoraSettings(rank=4)))
        for parameter in model.parameters():
            if parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.1)
        tokenizer = load_tokenizer(base)
        what = about(str(base), tokenizer, full=False, run="r")
        what = replace(what, dialect=harness.dialect, harness=harness.record(), step=step)
        return save_checkpoint(folder, model, tokenizer, what)


def give_template(folder: Path, name: str) -> Path:
    """The chat template of a known model, with the tokens that it uses."""
    from harness.conftest import MARKERS, SPECIAL
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import chat_template_utils

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = getattr(chat_template_utils, f"{name}_chat_template")
    tokenizer.add_tokens(SPECIAL, special_tokens=True)
    tokenizer.add_tokens(MARKERS)
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def checkpoint(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_adapter(tiny_model, tmp_path_factory.mktemp("run") / "grpo/checkpoints/last")


@pytest.fixture(scope="session")
def newer(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_adapter(tiny_model, tmp_path_factory.mktemp("newer") / "checkpoint", seed=5, step=9)


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("native")
    base = give_template(build_tiny_model(folder / "base"), "qwen3")
    return write_adapter(base, folder / "checkpoint", NATIVE)


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., Running]]:
    """Serves checkpoints until the module ends."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def make(checkpoint: Path | str, **kw: Any) -> Running:
            settings = {"dtype": "float32", "slots": 4, "grace_seconds": 0.5, **kw}
            return stack.enter_context(serve(Settings(checkpoint=str(checkpoint), **settings)))

        yield make


@pytest.fixture(scope="module")
def server(start: Callable[..., Running], checkpoint: Path) -> Running:
    return start(checkpoint)


@pytest.fixture(scope="module")
def http(server: Running) -> Iterator[httpx.Client]:
    with client(server) as made:
        yield made


def client(server: Running) -> httpx.Client:
    headers = {"Authorization": f"Bearer {server.token}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=60, trust_env=False)
