"""Every pass gives transformers' own numbers, for each architecture that it claims."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.tiny import make_model, rescore
from transformers import AutoModelForCausalLM

from inloop.engine.base import Completion, Sampling
from inloop.engine.core import Core
from inloop.engine.scheduler import Outcome, Request

ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LeanForward", {}),
    "qwen3": ("LeanForward", {}),
    "qwen2": ("LeanForward", {}),
    "mistral": ("LeanForward", {"sliding_window": 12}),
    "gemma3_text": ("PackedForward", {"sliding_window": 12}),
    "phi3": ("PackedForward", {"pad_token_id": 0}),
    "gpt_neox": ("PackedForward", {}),
    "gemma2": ("PlainForward", {"sliding_window": 12}),
    "mamba": ("PlainForward", {}),
}


def run(core: Core, requests: list[Request]) -> None:
    with torch.inference_mode():
        for request in requests:
            core.scheduler.add(request)
        while not core.scheduler.idle:
            core.scheduler.step()


def ask(prompt: list[int], sampling: Sampling, got: list[Outcome], conversation: str | None = None) -> Request:
    return Request(prompt=prompt, sampling=sampling, conversation=conversation, done=got.append)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_logprobs_are_those_of_a_plain_forward(kind: str, tmp_path: Path) -> None:
    """Conversations of unequal length, interleaved, over three turns, in fewer slots than conversations."""
    expected_pass, changes = ARCHITECTURES[kind]
    folder = make_model(tmp_path / kind, kind, **changes)
    core = Core(folder, name=kind, dtype="float32", max_model_len=200, slots=3)
    assert type(core.forward).__name__ == expected_pass
    reference = AutoModelForCausalLM.from_pretrained(folder).eval()
    dice = random.Random(1)
    histories = {str(i): [dice.randrange(3, 400) for _ in range(dice.randrange(1, 40))] for i in range(5)}
    for turn in range(3):
        got: dict[str, list[Outcome]] = {name: [] for name in histories}
        sampling = Sampling(max_tokens=9, temperature=0.7, seed=turn)
        run(core, [ask(list(h), sampling, got[name], name) for name, h in histories.items()])
        for name, history in histories.items():
            (completion,) = got[name]
            assert isinstance(completion, Completion)
            wanted = rescore(reference, history, completion.token_ids, 0.7)
            assert completion.logprobs == pytest.approx(wanted, abs=1e-4)
            histories[name] = history + completion.token_ids + [dice.randrange(3, 400) for _ in range(7)]


def test_long_prompt_goes_in_chunks_while_others_decode(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "long", max_position_embeddings=1200)
    core = Core(folder, name="long", dtype="float32", max_model_len=1200, slots=2)
    reference = AutoModelForCausalLM.from_pretrained(folder).eval()
    dice = random.Random(2)
    short, long = [5, 6, 7], [dice.randrange(3, 400) for _ in range(900)]
    got: dict[str, list[Outcome]] = {"short": [], "long": []}
    wish = Sampling(max_tokens=12, seed=3, ignore_eos=True)
    run(core, [ask(long, wish, got["long"]), ask(short, wish, got["short"])])
    for name, prompt in (("short", short), ("long", long)):
        (completion,) = got[name]
        assert isinstance(completion, Completion) and len(completion.token_ids) == 12
        assert completion.logprobs == pytest.approx(rescore(reference, prompt, completion.token_ids), abs=1e-4)
    assert core.scheduler.meters.steps < 900 / 256 + 14


def test_bfloat16_stays_within_its_rounding(tiny: Path) -> None:
    core = Core(tiny, name="tiny", dtype="bfloat16", max_model_len=200, slots=4)
    reference = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.bfloat16).eval()
    differences: list[float] = []
    for seed in range(8):
        got: list[Outcome] = []
        run(core, [ask([9, 8, 7, seed + 3], Sampling(max_tokens=20, seed=seed, ignore_eos=True), got)])
        (completion,) = got
        assert isinstance(completion, Completion)
        wanted = rescore(reference, [9, 8, 7, seed + 3], completion.token_ids)
        differences += [abs(a - b) for a, b in zip(completion.logprobs, wanted, strict=True)]
    assert len(differences) == 160 and sum(differences) / len(differences) < 2e-2
