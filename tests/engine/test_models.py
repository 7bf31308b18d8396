"""From names to folders, and what is refused on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from engine.tiny import rescore

from inloop.engine.base import Sampling
from inloop.engine.core import Core
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.models import resolve_model
from inloop.errors import InloopError


def test_a_folder_is_itself(tiny: Path) -> None:
    assert resolve_model(tiny) == resolve_model(str(tiny)) == tiny.resolve()


@pytest.mark.parametrize("name", ["no-such-model", "./nowhere", "/nowhere/at/all", "a/b/c"])
def test_unknown_names_say_what_may_be_used(name: str) -> None:
    with pytest.raises(InloopError, match="unknown model") as told:
        resolve_model(name)
    assert told.value.fix is not None and "smollm2-135m" in told.value.fix


def test_a_hub_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InloopError, match="the hub did not give it"):
        resolve_model("some-one/some-model")


def test_pickled_weights_are_never_loaded(tmp_path: Path) -> None:
    with pytest.raises(InloopError, match=r"config\.json"):
        resolve_model(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04")
    with pytest.raises(InloopError, match="safetensors"):
        resolve_model(tmp_path)


BUILD = "from inloop.engine.models import resolve_model; print(resolve_model('smollm2-135m'))"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_default_is_built_once_when_two_ask_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INLOOP_CACHE", str(tmp_path))
    asks = [subprocess.Popen([sys.executable, "-c", BUILD], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [ask.communicate()[0].strip() for ask in asks]
    folder = tmp_path / "models" / "smollm2-135m"
    assert said == [str(folder)] * 2 and [a.returncode for a in asks] == [0, 0]
    assert {p.name for p in folder.iterdir()} >= {"model.safetensors", "tokenizer.json", "chat_template.jinja"}
    assert not [p for p in folder.parent.iterdir() if p.is_dir() and p != folder]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-4), ("bfloat16", 1e-2)])
def test_the_default_model_samples_what_a_trainer_computes(dtype: str, most: float) -> None:
    """Mean difference of the log-probabilities over conversations of two turns, the trainer in the same dtype."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = resolve_model("smollm2-135m")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    apart: list[float] = []
    with EmbeddedEngine.start(folder, dtype=dtype, slots=4) as engine:
        assert engine.info().meta["pass"] == "LeanForward"
        for index in range(4):
            history = tokenizer.encode(f"<|im_start|>user\nAdd {index} to a list.<|im_end|>\n<|im_start|>assistant\n")
            for turn in range(2):
                wish = Sampling(max_tokens=12, seed=turn, ignore_eos=True)
                got = engine.generate(history, wish, conversation=str(index))
                wanted = rescore(model, history, got.token_ids)
                apart += [abs(a - b) for a, b in zip(got.logprobs, wanted, strict=True)]
                history = history + got.token_ids + tokenizer.encode("<|im_end|>\n<|im_start|>user\nMore.")
    assert len(apart) == 96 and sum(apart) / len(apart) < most


def test_stop_tokens_are_those_of_config_and_tokenizer(tiny: Path) -> None:
    core = Core(tiny, name="tiny", dtype="float32", max_model_len=None, slots=1)
    assert core.scheduler.stops == {2} and core.max_model_len == 256
