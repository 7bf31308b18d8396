"""A checkpoint knows its base model, and its merged form is an ordinary one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import build_tiny_model

from inloop.data.tokens import load_tokenizer
from inloop.errors import ConfigError, DataError
from inloop.train import checkpoint
from inloop.train.checkpoint import about, load_checkpoint, load_policy_model, merge_checkpoint, save_checkpoint
from inloop.train.lora import LoraSettings, lora_config

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # PEFT and transformers, of each other

PROMPT = torch.tensor([[5, 6, 7, 8, 9, 10, 11]])


@pytest.fixture(scope="module")
def adapter(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter that changes something."""
    from peft import get_peft_model

    torch.manual_seed(0)
    model = load_policy_model(tiny_model)
    model = get_peft_model(model, lora_config(model, LoraSettings(rank=4, layers=1)))
    for parameter in model.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.1)
    folder = tmp_path_factory.mktemp("adapter") / "checkpoint"
    tokenizer = load_tokenizer(tiny_model)
    return save_checkpoint(folder, model, tokenizer, about(str(tiny_model), tokenizer, full=False, run="r"))


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        out: torch.Tensor = model.eval()(PROMPT).logits
    return out


def test_round_trip(adapter: Path, tiny_model: Path) -> None:
    model, tokenizer, what = load_checkpoint(adapter)
    assert what.kind == "adapter" and what.run == "r" and tokenizer.chat_template
    assert not torch.allclose(logits(model), logits(load_policy_model(tiny_model)))
    again, _, _ = load_checkpoint(adapter, str(tiny_model))
    assert torch.equal(logits(model), logits(again))


def test_merged_loads_in_plain_transformers(adapter: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = merge_checkpoint(adapter, tmp_path / "merged")
    plain = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    model, _, _ = load_checkpoint(adapter)
    torch.testing.assert_close(logits(plain), logits(model), rtol=1e-4, atol=1e-5)
    assert (out / "model.safetensors").is_file() and AutoTokenizer.from_pretrained(out).chat_template
    assert checkpoint.read_about(out).kind == "full"
    whole, _, _ = load_checkpoint(out)
    assert torch.equal(logits(whole), logits(plain))


def test_another_base_is_refused(adapter: Path, tmp_path: Path) -> None:
    other = build_tiny_model(tmp_path / "other", seed=1)
    with pytest.raises(DataError, match=r"was trained from .*, not from .*other") as error:
        load_checkpoint(adapter, str(other))
    assert error.value.fix and "base model" in error.value.fix
    deeper = build_tiny_model(tmp_path / "deeper", layers=3)
    with pytest.raises(DataError, match="was trained from"):
        load_checkpoint(adapter, str(deeper))


def test_a_copy_of_the_base_in_another_precision_is_the_same(adapter: Path, tiny_model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    load_policy_model(tiny_model, dtype=torch.bfloat16).save_pretrained(copy)
    load_checkpoint(adapter, str(copy))


def test_what_is_no_checkpoint(tmp_path: Path, adapter: Path) -> None:
    with pytest.raises(DataError, match=r"has no inloop\.json"):
        load_checkpoint(tmp_path)
    (tmp_path / "inloop.json").write_text("{torn")
    with pytest.raises(DataError, match="can't be used"):
        load_checkpoint(tmp_path)
    data = json.loads((adapter / "inloop.json").read_text())
    (tmp_path / "inloop.json").write_text(json.dumps({**data, "format": 99}))
    with pytest.raises(DataError, match="format 99"):
        load_checkpoint(tmp_path)


def test_saving_replaces_the_old_one_whole(adapter: Path, tiny_model: Path, tmp_path: Path) -> None:
    model, tokenizer, what = load_checkpoint(adapter)
    folder = tmp_path / "best"
    for _ in range(2):
        save_checkpoint(folder, model, tokenizer, what)
        (folder / "stale").write_text("from before")
    save_checkpoint(folder, model, tokenizer, what)
    assert [p.name for p in tmp_path.iterdir()] == ["best"] and not (folder / "stale").exists()


def test_more_blocks_than_there_are(tiny_model: Path) -> None:
    with pytest.raises(ConfigError, match="the model has 2 blocks"):
        lora_config(load_policy_model(tiny_model), LoraSettings(layers=3))


def test_all_linear_layers_but_the_head(tiny_model: Path) -> None:
    made = lora_config(load_policy_model(tiny_model), LoraSettings())
    assert made.target_modules == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert made.layers_to_transform is None
