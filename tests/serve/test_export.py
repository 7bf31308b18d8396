"""Every form loads in the tool that it is for, and says what it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from serve.conftest import write_adapter

from inloop.errors import DataError, InloopError
from inloop.evaluate.results import Results
from inloop.serve.export import ExportSettings, export
from inloop.serve.gguf import unpacked
from inloop.train.checkpoint import load_checkpoint, read_about

pytestmark = [pytest.mark.xdist_group("serve"), pytest.mark.filterwarnings("ignore::FutureWarning")]
PROMPT = torch.tensor([[5, 6, 7, 8, 9, 10, 11]])


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        out: torch.Tensor = model.eval()(PROMPT).logits
    return out


def make(checkpoint: Path, out: Path, to: str, **kw: Any) -> Path:
    return export(checkpoint, out, ExportSettings(to=to, **kw))


def test_adapter_loads_with_peft_alone(checkpoint: Path, tmp_path: Path) -> None:
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoTokenizer

    out = make(checkpoint, tmp_path / "adapter", "adapter")
    model = AutoPeftModelForCausalLM.from_pretrained(out)
    wanted = load_checkpoint(checkpoint)[0]
    torch.testing.assert_close(logits(model), logits(wanted))
    assert AutoTokenizer.from_pretrained(out).chat_template and read_about(out) == read_about(checkpoint)
    with pytest.raises(DataError, match="not empty"):
        make(checkpoint, out, "adapter")


@pytest.mark.parametrize(("dtype", "apart"), [("float32", 1e-5), ("bfloat16", 0.1)])
def test_merged_loads_with_transformers_alone(checkpoint: Path, tmp_path: Path, dtype: str, apart: float) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = make(checkpoint, tmp_path / "merged", "merged", dtype=dtype)
    model = AutoModelForCausalLM.from_pretrained(out)
    assert str(model.dtype) == f"torch.{dtype}" and read_about(out).kind == "full"
    wanted = logits(load_checkpoint(checkpoint)[0])
    assert (logits(model).float() - wanted).abs().max() < apart
    assert AutoTokenizer.from_pretrained(out).chat_template and "merged" in (out / "README.md").read_text()
    with pytest.raises(InloopError, match="no adapter"):
        make(out, tmp_path / "again", "adapter")
    assert not (tmp_path / "again").exists()


@pytest.fixture(scope="module")
def smol_shaped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Llama behind a tokenizer that llama.cpp knows."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from inloop.engine.models import resolve_model

    folder = tmp_path_factory.mktemp("smol")
    tokenizer = AutoTokenizer.from_pretrained(resolve_model("smollm2-135m"))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048, tie_word_embeddings=True, eos_token_id=2, pad_token_id=2,
        bos_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    return write_adapter(folder / "base", folder / "checkpoint")


@pytest.mark.slow
def test_gguf_by_llama_cpp_and_back(smol_shaped: Path, tmp_path: Path) -> None:
    from gguf import GGUFReader
    from transformers import AutoModelForCausalLM

    out = make(smol_shaped, tmp_path / "gguf", "gguf", gguf_type="f32")
    reader = GGUFReader(out / "model-f32.gguf")
    assert "<|im_start|>" in reader.get_field("tokenizer.chat_template").contents()
    assert reader.get_field("general.architecture").contents() == "llama"
    wanted = logits(load_checkpoint(smol_shaped)[0])
    again = AutoModelForCausalLM.from_pretrained(unpacked(out, tmp_path / "plain"), dtype=torch.float32)
    torch.testing.assert_close(logits(again), wanted, rtol=1e-4, atol=1e-4)
    assert read_about(out).kind == "full" and (out / "tokenizer.json").is_file()


@pytest.mark.slow
def test_a_tokenizer_that_llama_cpp_does_not_know(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InloopError, match="pre-tokenizer was not recognized") as error:
        make(checkpoint, tmp_path / "gguf", "gguf")
    assert error.value.fix == "use --to merged" and list(tmp_path.iterdir()) == []


def test_what_can_not_be_exported(checkpoint: Path, tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(InloopError, match="unknown form"):
        make(checkpoint, tmp_path / "a", "onnx")
    with pytest.raises(DataError, match="not a checkpoint"):
        make(tiny_model, tmp_path / "a", "merged")
    with pytest.raises(InloopError, match="unknown dtype"):
        make(checkpoint, tmp_path / "a", "merged", dtype="int4")


def score(mean: float) -> dict[str, Any]:
    return {"mean": mean, "low": mean - 0.1, "high": mean + 0.1}


def run_folder(root: Path, checkpoint: Path) -> Path:
    """As a recipe leaves it."""
    place = root / "grpo/checkpoints/last"
    shutil.copytree(checkpoint, place)
    for folder in (root, root / "grpo"):
        (folder / "config.toml").write_text("seed = 0\n")
    receipt = {"verdict": "holds", "failures": [], "token_identity": 1.0, "trained_tokens": 4321,
               "faults": {"engine_fault": 2}, "drops": {"zero_variance": 5}}  # fmt: skip
    (root / "grpo/receipt.json").write_text(json.dumps(receipt))
    for name, mean in (("base", 0.1), ("grpo", 0.3)):
        summary = {"tasks": 50, "tasks_scored": 49, "samples": 196, "pass@1": score(mean), "pass@4": score(mean + 0.2),
                   "ceiling": {"solved": 50, "audited": 50}, "faults": {"sandbox_fault": 1}}  # fmt: skip
        Results(name=name, checkpoint={}, taskset={}, harness={}, sampling={}, summary=summary).write(
            root / "evaluations" / name
        )
    told = [{"a": "base", "b": "grpo", "comparison": {"verdict": "better"}}]
    (root / "comparison.json").write_text(json.dumps(told))
    return place


def test_the_card_tells_what_the_run_folder_holds(checkpoint: Path, tmp_path: Path) -> None:
    place = run_folder(tmp_path / "quick", checkpoint)
    (tmp_path / "quick/evaluations/torn").mkdir()
    (tmp_path / "quick/evaluations/torn/results.json").write_text("{")
    card = (make(place, tmp_path / "out", "adapter") / "README.md").read_text()
    for says in ("30.0 % [20.0, 40.0]", "49 of 50", "50 of 50", "sandbox_fault: 1", "base -> grpo: **better**", "4321",
                 "engine_fault: 2", "not a results file", "At most 6 turns", "base_model:"):  # fmt: skip
        assert says in card, says
    assert "## Tasks\n\nNot recorded in the run folder." in card


def test_the_card_of_a_lone_checkpoint_says_what_is_missing(checkpoint: Path, tmp_path: Path) -> None:
    place = tmp_path / "lone"
    shutil.copytree(checkpoint, place)
    card = (make(place, tmp_path / "out", "adapter") / "README.md").read_text()
    assert card.count("Not recorded in the run folder.") == 3 and "its own licence" in card
