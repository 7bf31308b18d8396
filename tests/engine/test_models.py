"""From names to folders, and what is refused on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.tiny import rescore
from transformers import AutoTokenizer, DynamicCache

from inloop.engine.base import Sampling
from inloop.engine.core import Core, load_model
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


def difference(one: list[float], other: list[float]) -> float:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) / len(one)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_default_model_samples_what_a_trainer_computes() -> None:
    """Mean difference of the log-probabilities over conversations of two turns."""
    folder = resolve_model("smollm2-135m")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), load_model(folder, torch.float32)
    got: list[float] = []
    wanted: list[float] = []
    with EmbeddedEngine.start(folder, dtype="float32", slots=4) as engine:
        assert engine.info().meta["pass"] == "LeanForward"
        for index in range(4):
            history = tokenizer.encode(f"<|im_start|>user\nAdd {index} to a list.<|im_end|>\n<|im_start|>assistant\n")
            for turn in range(2):
                wish = Sampling(max_tokens=12, seed=turn, ignore_eos=True)
                completion = engine.generate(history, wish, conversation=str(index))
                got += completion.logprobs
                wanted += rescore(model, history, completion.token_ids)
                history = history + completion.token_ids + tokenizer.encode("<|im_end|>\n<|im_start|>user\nMore.")
    assert len(got) == 96 and difference(got, wanted) < 1e-4


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_in_bfloat16_it_is_as_near_as_transformers_is_to_itself() -> None:
    """How near that is depends on the CPU: transformers' own cached decoding against its plain forward."""
    folder = resolve_model("smollm2-135m")
    prompt = AutoTokenizer.from_pretrained(folder).encode("def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):")
    with EmbeddedEngine.start(folder, dtype="bfloat16", slots=4) as engine:
        assert engine.info().meta["pass"] == "LeanForward"
        got = engine.generate(prompt, Sampling(max_tokens=40, seed=1, temperature=0.7, ignore_eos=True))
    model = load_model(folder, torch.bfloat16)
    plain = rescore(model, prompt, got.token_ids, 0.7)
    cached = decode(model, prompt, got.token_ids, 0.7)
    assert difference(got.logprobs, plain) < 1.5 * difference(cached, plain) + 2e-3 < 0.1


def decode(model: Any, prompt: list[int], answer: list[int], temperature: float) -> list[float]:
    """The log-probabilities of `answer`, token by token with transformers' cache."""
    cache, out, ids = DynamicCache(config=model.config), [], prompt
    with torch.no_grad():
        for token in answer:
            logits = model(input_ids=torch.tensor([ids]), cache=cache).logits[0, -1].float()
            out.append(float((logits / temperature).log_softmax(-1)[token]))
            ids = [token]
    return out


def test_stop_tokens_are_those_of_config_and_tokenizer(tiny: Path) -> None:
    core = Core(tiny, name="tiny", dtype="float32", max_model_len=None, slots=1)
    assert core.scheduler.stops == {2} and core.max_model_len == 256
