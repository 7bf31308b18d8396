"""The vLLM client against our server, which has the same surface; and against vLLM where one is given."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.tiny import rescore
from safetensors.torch import save_file

from inloop.engine.base import ContextFull, Sampling
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.server import EngineServer
from inloop.engine.vllm import VllmEngine
from inloop.errors import EngineFault, InloopError

pytestmark = pytest.mark.xdist_group("engine")


@pytest.fixture
def server(changeable: EmbeddedEngine) -> Iterator[EngineServer]:
    with EngineServer(changeable, token="secret") as running:
        yield running


@pytest.fixture
def engine(server: EngineServer) -> Iterator[VllmEngine]:
    attached = VllmEngine.attach(server.url, token="secret")
    yield attached
    attached.close()


def write_adapter(folder: Path, seed: int) -> Path:
    folder.mkdir()
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "lora_alpha": 8, "r": 2}')
    dice = torch.Generator().manual_seed(seed)
    name = "base_model.model.model.layers.0.self_attn.q_proj"
    a, b = torch.randn(2, 64, generator=dice), torch.randn(64, 2, generator=dice)
    save_file({f"{name}.lora_A.weight": a, f"{name}.lora_B.weight": b}, folder / "adapter_model.safetensors")
    return folder


def test_attached_engine_says_what_it_serves(engine: VllmEngine, changeable: EmbeddedEngine) -> None:
    info = engine.info()
    assert (info.max_model_len, info.dtype, info.trainable) == (256, "float32", True)
    assert info.model == changeable.info().model


def test_generates_the_same_as_the_engine(engine: VllmEngine, changeable: EmbeddedEngine, plain: Any) -> None:
    wish = Sampling(max_tokens=10, seed=6, temperature=0.7)
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda i: engine.generate([5, 6, i + 7], wish, conversation=str(i)), range(4)))
    for index, completion in enumerate(got):
        prompt = [5, 6, index + 7]
        assert completion.token_ids == changeable.generate(prompt, wish).token_ids
        assert completion.logprobs == pytest.approx(rescore(plain, prompt, completion.token_ids, 0.7), abs=1e-4)
    with pytest.raises(ContextFull):
        engine.generate([5] * 256, wish)


def test_adapters_by_name_per_version(engine: VllmEngine, tmp_path: Path) -> None:
    wish = Sampling(max_tokens=6, seed=1)
    copy = pickle.loads(pickle.dumps(engine))
    seen = [engine.generate([5, 6], wish).logprobs]
    for version in (1, 2, 3, 4):
        engine.load_adapter(write_adapter(tmp_path / str(version), version), version)
        assert engine.info().weight_version == version
        got = engine.generate([5, 6], wish)
        assert got.weight_version == version and got.logprobs not in seen
        seen.append(got.logprobs)
        assert copy.generate([5, 6], wish).logprobs == got.logprobs
    copy.close()
    with pytest.raises(InloopError):
        engine.load_adapter(tmp_path / "nowhere", 5)
    assert engine.generate([5, 6], wish).logprobs == seen[-1]


def test_whole_weights_are_refused_with_a_way_out(engine: VllmEngine) -> None:
    with pytest.raises(InloopError, match="LoRA"):
        engine.load_weights([], 1)


def test_pause_holds_and_resume_lets_go(engine: VllmEngine) -> None:
    engine.pause()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engine.generate, [5], Sampling(max_tokens=3))
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        engine.resume()
        assert waiting.result(60).token_ids


def test_what_is_wrong_with_a_server_is_told(server: EngineServer) -> None:
    with pytest.raises(InloopError, match="token"):
        VllmEngine.attach(server.url, token="wrong")
    with pytest.raises(EngineFault):
        VllmEngine.attach("http://127.0.0.1:9")
    with pytest.raises(InloopError):
        VllmEngine.launch("model", python="/nowhere/python")
    with pytest.raises(EngineFault, match="exit code"):
        VllmEngine.launch("model", python="/bin/false")


def test_a_dead_server_is_a_fault(changeable: EmbeddedEngine) -> None:
    with EngineServer(changeable) as server:
        engine = VllmEngine.attach(server.url)
    with pytest.raises(EngineFault):
        engine.generate([5], Sampling())
    engine.close()


@pytest.mark.vllm
@pytest.mark.skipif("INLOOP_VLLM_URL" not in os.environ, reason="set INLOOP_VLLM_URL to a vLLM server of smollm2-135m")
def test_a_real_vllm_server() -> None:
    """vLLM with processed logprobs, against transformers in the precision that it serves."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from inloop.engine.models import resolve_model

    engine = VllmEngine.attach(os.environ["INLOOP_VLLM_URL"])
    folder, info = resolve_model("smollm2-135m"), engine.info()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, info.dtype)).eval()
    prompt = AutoTokenizer.from_pretrained(folder).encode("def add(a, b):\n    return")
    got = engine.generate(prompt, Sampling(max_tokens=40, seed=1, temperature=0.8))
    wanted = rescore(model, prompt, got.token_ids, 0.8)
    apart = sum(abs(a - b) for a, b in zip(got.logprobs, wanted, strict=True)) / len(wanted)
    assert apart < (1e-4 if info.dtype == "float32" else 2e-2)
    engine.close()
