"""The engine in its process: conversations, seeds, weights while it runs, death and return."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.elsewhere import ask, ask_and_close
from engine.tiny import make_model, rescore
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from inloop.engine import embedded
from inloop.engine.base import Completion, ContextFull, Sampling
from inloop.engine.core import Core
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.scheduler import Outcome, Request
from inloop.errors import EngineFault, InloopError

Start = Callable[..., EmbeddedEngine]
LONG = Sampling(max_tokens=200, ignore_eos=True, seed=1)

PEFT_WARNS = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
pytestmark = pytest.mark.xdist_group("engine")  # one process serves them all


def test_a_turn_computes_only_what_is_new(shared_engine: EmbeddedEngine, plain: Any) -> None:
    history = [311, 312, 313, 314, 315]  # nobody else's prompt: a free slot's leading tokens are kept
    first = shared_engine.generate(history, Sampling(max_tokens=8, seed=1, ignore_eos=True), conversation="turns")
    assert first.prompt_tokens_computed == 5
    history += [*first.token_ids, 11, 12]
    second = shared_engine.generate(history, Sampling(max_tokens=8, seed=2), conversation="turns")
    assert second.prompt_tokens_computed == 3  # the two new tokens, and the sampled one that was never fed
    assert second.logprobs == pytest.approx(rescore(plain, history, second.token_ids), abs=1e-4)
    edited = [311, 312, 99, *history[3:]]
    third = shared_engine.generate(edited, Sampling(max_tokens=8, seed=3), conversation="turns")
    assert third.prompt_tokens_computed == len(edited) - 2
    assert third.logprobs == pytest.approx(rescore(plain, edited, third.token_ids), abs=1e-4)


def test_a_group_computes_its_prompt_once(shared_engine: EmbeddedEngine, plain: Any) -> None:
    engine = shared_engine
    prompt = [3 + i % 90 for i in range(60)]
    with ThreadPoolExecutor(6) as pool:
        asks = [
            pool.submit(engine.generate, prompt, Sampling(max_tokens=6, seed=s), conversation=f"g{s}") for s in range(6)
        ]
        got = [a.result() for a in asks]
    assert sorted(c.prompt_tokens_computed for c in got) == [1, 1, 1, 1, 1, 60]
    for completion in got:
        assert completion.logprobs == pytest.approx(rescore(plain, prompt, completion.token_ids), abs=1e-4)
    assert len({tuple(c.token_ids) for c in got}) > 1


def test_seed_decides_whatever_runs_beside(shared_engine: EmbeddedEngine) -> None:
    wish = Sampling(max_tokens=12, seed=42, temperature=0.8, ignore_eos=True)
    alone = shared_engine.generate([5, 6, 7], wish)
    with ThreadPoolExecutor(8) as pool:
        others = [pool.submit(shared_engine.generate, [9, i + 3], LONG) for i in range(7)]
        beside = pool.submit(shared_engine.generate, [5, 6, 7], wish).result()
        assert all(len(o.result().token_ids) == 200 for o in others)
    assert beside.token_ids == alone.token_ids


def test_stop_tokens_and_limits(shared_engine: EmbeddedEngine) -> None:
    free = shared_engine.generate([5, 6], Sampling(max_tokens=9, seed=3, ignore_eos=True))
    assert (len(free.token_ids), free.finish) == (9, "length")
    stop = free.token_ids[4]
    ended = shared_engine.generate([5, 6], Sampling(max_tokens=9, seed=3, ignore_eos=True, stop_token_ids=(stop,)))
    assert ended.finish == "stop" and ended.token_ids == free.token_ids[: free.token_ids.index(stop) + 1]
    full = shared_engine.generate([5] * 250, Sampling(max_tokens=99, seed=3, ignore_eos=True))
    assert (len(full.token_ids), full.finish) == (6, "length")


def test_bad_requests_raise_and_leave_it_running(shared_engine: EmbeddedEngine) -> None:
    with pytest.raises(ContextFull) as full:
        shared_engine.generate([5] * 256, Sampling())
    assert (full.value.prompt_tokens, full.value.max_model_len) == (256, 256)
    for prompt in ([], [400], [-3]):
        with pytest.raises(InloopError):
            shared_engine.generate(prompt, Sampling())
    assert shared_engine.generate([5], Sampling(max_tokens=1)).token_ids


def test_abort_forget_and_streaming(shared_engine: EmbeddedEngine) -> None:
    seen: list[int] = []
    enough = threading.Event()

    def on_token(token: int, logprob: float) -> None:
        seen.append(token)
        if len(seen) == 3:
            enough.set()

    shared_engine.pause()
    handle, future = shared_engine.submit([5, 6], LONG, on_token=on_token, conversation="gone")
    shared_engine.abort(handle)
    shared_engine.resume()
    assert future.result(60).finish == "abort"
    _, future = shared_engine.submit([5, 6], LONG, on_token=on_token, conversation="gone")
    assert enough.wait(60)
    shared_engine.forget("gone")
    completion = future.result(60)
    assert seen[-len(completion.token_ids) :] == completion.token_ids
    assert completion.finish in ("abort", "length")


def changed(model: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def test_new_weights_serve_at_once_and_running_requests_go_on(changeable: EmbeddedEngine, tiny: Path) -> None:
    engine = changeable
    new = changed(AutoModelForCausalLM.from_pretrained(tiny).eval(), 1)
    _, running = engine.submit([5, 6, 7], LONG)
    engine.load_weights(new.named_parameters(), 7)
    assert len(running.result(60).token_ids) == 200
    got = engine.generate([5, 6, 7], Sampling(max_tokens=10, seed=1), conversation="a")
    assert got.weight_version == 7 == engine.info().weight_version
    assert got.logprobs == pytest.approx(rescore(new, [5, 6, 7], got.token_ids), abs=1e-4)


def test_a_conversation_is_computed_anew_after_a_swap(changeable: EmbeddedEngine, tiny: Path) -> None:
    engine = changeable
    first = engine.generate([5, 6, 7], Sampling(max_tokens=5, seed=1, ignore_eos=True), conversation="a")
    new = changed(AutoModelForCausalLM.from_pretrained(tiny).eval(), 2)
    engine.load_weights(new.named_parameters(), 1)
    history = [5, 6, 7, *first.token_ids, 9]
    second = engine.generate(history, Sampling(max_tokens=5, seed=2), conversation="a")
    assert second.prompt_tokens_computed == len(history)
    assert second.logprobs == pytest.approx(rescore(new, history, second.token_ids), abs=1e-4)


def test_tied_head_follows_the_embedding(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "tied", tie_word_embeddings=True)
    core = Core(folder, name="tied", dtype="float32", max_model_len=64, slots=1)
    new = changed(AutoModelForCausalLM.from_pretrained(folder).eval(), 3)
    got: list[Outcome] = []
    with torch.inference_mode():
        core.swap([(n, p) for n, p in new.named_parameters() if n != "lm_head.weight"], 1)
        core.scheduler.add(Request(prompt=[5, 6, 7], sampling=Sampling(max_tokens=10, seed=1), done=got.append))
        while not core.scheduler.idle:
            core.scheduler.step()
    (completion,) = got
    assert isinstance(completion, Completion)
    assert completion.logprobs == pytest.approx(rescore(new, [5, 6, 7], completion.token_ids), abs=1e-4)


@pytest.mark.parametrize("wrong", [{"no.such.weight": (2, 2)}, {"model.norm.weight": (3,)}], ids=["name", "shape"])
def test_weights_that_do_not_fit_change_nothing(
    changeable: EmbeddedEngine, plain: Any, wrong: dict[str, tuple[int, ...]]
) -> None:
    engine = changeable
    good = ("model.embed_tokens.weight", torch.zeros(400, 64))
    with pytest.raises(InloopError, match=next(iter(wrong))):
        engine.load_weights([good, *((n, torch.zeros(s)) for n, s in wrong.items())], 5)
    got = engine.generate([5, 6, 7], Sampling(max_tokens=6, seed=1))
    assert got.weight_version == 0
    assert got.logprobs == pytest.approx(rescore(plain, [5, 6, 7], got.token_ids), abs=1e-4)


def adapter(tiny: Path, folder: Path, seed: int) -> Any:
    """A PEFT adapter with both matrices far from 0, saved to `folder`; returns the adapted model."""
    torch.manual_seed(seed)
    config = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj", "gate_proj"])
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(tiny).eval(), config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.normal_(0, 0.1)
    model.save_pretrained(folder)
    return model


@PEFT_WARNS
def test_adapters_come_and_go_exactly(changeable: EmbeddedEngine, tiny: Path, tmp_path: Path) -> None:
    engine = changeable
    wish = Sampling(max_tokens=10, seed=1, ignore_eos=True)
    before = engine.generate([5, 6, 7], wish)
    for version in (1, 2):
        model = adapter(tiny, tmp_path / f"v{version}", version)
        engine.load_adapter(tmp_path / f"v{version}", version)
        got = engine.generate([5, 6, 7], wish)
        assert got.weight_version == version
        assert got.logprobs == pytest.approx(rescore(model, [5, 6, 7], got.token_ids), abs=1e-4)
        assert got.logprobs != pytest.approx(before.logprobs, abs=1e-2)
    engine.unload_adapter(3)
    after = engine.generate([5, 6, 7], wish)
    assert (after.token_ids, after.logprobs) == (before.token_ids, before.logprobs)


@PEFT_WARNS
def test_wrong_adapters_are_refused(changeable: EmbeddedEngine, tiny: Path, tmp_path: Path) -> None:
    engine = changeable
    other = make_model(tmp_path / "other", hidden_size=32)
    adapter(other, tmp_path / "misfit", 1)
    adapter(tiny, tmp_path / "dora", 1)
    config = tmp_path / "dora" / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "use_dora": True}))
    (tmp_path / "empty").mkdir()
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / "adapter_config.json").write_text('{"peft_type": "LORA", "lora_alpha": 1}')
    save_file({"nonsense": torch.zeros(2)}, tmp_path / "noise" / "adapter_model.safetensors")
    for name in ("misfit", "dora", "empty", "noise", "absent"):
        with pytest.raises(InloopError):
            engine.load_adapter(tmp_path / name, 1)
    assert engine.generate([5], Sampling(max_tokens=2)).weight_version == 0


def engine_pid(engine: EmbeddedEngine) -> int:
    assert engine._supervisor is not None
    return engine._supervisor.pid


@PEFT_WARNS
def test_it_dies_and_comes_back_with_the_weights_it_had(changeable: EmbeddedEngine, tiny: Path, tmp_path: Path) -> None:
    engine = changeable
    new = changed(AutoModelForCausalLM.from_pretrained(tiny).eval(), 4)
    engine.load_weights(new.named_parameters(), 3)
    adapter(tiny, tmp_path / "lora", 5)
    engine.load_adapter(tmp_path / "lora", 4)
    wish = Sampling(max_tokens=10, seed=1, ignore_eos=True)
    before = engine.generate([5, 6, 7], wish)
    engine.pause()
    _, lost = engine.submit([5, 6, 7], LONG)
    engine.info()
    os.kill(engine_pid(engine), signal.SIGKILL)
    with pytest.raises(EngineFault):
        lost.result(60)
    after = engine.generate([5, 6, 7], wish)
    assert (after.token_ids, after.weight_version) == (before.token_ids, 4)
    assert after.logprobs == pytest.approx(before.logprobs, abs=1e-5)


def test_closed_engine_is_a_fault(start: Start) -> None:
    engine = start()
    copy = pickle.loads(pickle.dumps(engine))
    assert copy.generate([5], Sampling(max_tokens=1)).token_ids
    engine.close()
    engine.close()
    for gone in (engine, copy):
        with pytest.raises(EngineFault):
            gone.generate([5], Sampling(max_tokens=1))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_processes_speak_to_the_same_engine(shared_engine: EmbeddedEngine, method: str) -> None:
    here = [ask(shared_engine, seed) for seed in range(2)]
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        there = list(pool.map(ask_and_close, [shared_engine] * 2, range(2)))
    assert [c.token_ids for c in there] == [c.token_ids for c in here]


STARTER = """
import sys, time
from inloop.engine.embedded import EmbeddedEngine
engine = EmbeddedEngine.start(sys.argv[1], dtype="float32", slots=2)
print(engine._supervisor.pid, engine._folder, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_engine_ends_when_its_starter_is_killed(tiny: Path, end: signal.Signals) -> None:
    """And leaves nothing: its folder goes, so that clients elsewhere do not wait for a restart."""
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(tiny)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid, folder = starter.stdout.readline().split()
    elsewhere = EmbeddedEngine(Path(folder))
    assert elsewhere.generate([5], Sampling(max_tokens=1), conversation="c").token_ids
    starter.send_signal(end)
    starter.wait()
    starter.stdout.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (Path(f"/proc/{pid}").exists() or Path(folder).exists()):
        time.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists() and not Path(folder).exists()
    elsewhere.forget("c")
    with pytest.raises(EngineFault):
        elsewhere.generate([5], Sampling(max_tokens=1))


def test_who_has_waited_in_vain_does_not_wait_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty rollouts of an engine that is gone must not wait for it one after the other."""
    monkeypatch.setattr(embedded, "RESTART_SECONDS", 1.0)
    engine = EmbeddedEngine(tmp_path)  # a folder without an engine, as both killed at once leave it
    began = time.monotonic()
    for _ in range(8):
        with pytest.raises(EngineFault):
            engine.info()
        engine.forget("c")
    assert 0.9 < time.monotonic() - began < 4


def test_what_cannot_start_says_why(tiny: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text('{"model_type": "no-such-architecture"}')
    save_file({"a": torch.zeros(1)}, broken / "model.safetensors")
    for model, kw, says in (
        (broken, {}, "can't load"),
        (tiny, {"max_model_len": 9999}, "max_model_len"),
        (tiny, {"dtype": "float8"}, "dtype"),
    ):
        with pytest.raises(InloopError, match=says):
            EmbeddedEngine.start(model, **kw)


def test_a_caller_who_gave_up_harms_nobody(shared_engine: EmbeddedEngine) -> None:
    """Neither a future that was cancelled nor a listener that raises may cost others their answers."""

    def angry(token: int, logprob: float) -> None:
        raise RuntimeError("nobody listens")

    _, given_up = shared_engine.submit([5, 6], LONG)
    given_up.cancel()
    _, unheard = shared_engine.submit([5, 6], Sampling(max_tokens=3), on_token=angry)
    assert unheard.result(60).token_ids
    assert shared_engine.generate([5], Sampling(max_tokens=2)).token_ids
