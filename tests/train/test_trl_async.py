"""The bridge to TRL: exact attention, exact ratio, and a loud failure when TRL changes what we stand on."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inloop.data.sample import MASKED, Sample
from inloop.engine.base import Completion, EngineInfo, Sampling
from inloop.train import trl_async
from inloop.train.trl_async import RatioCheck, Row

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def sample_rows(model_path: Path, count: int, *, groups: int = 2, noise: float = 0.0) -> list[Row]:
    """Contexts with a shared prompt whose 'sampled' tokens carry exactly the model's own log-probabilities."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32, attn_implementation="eager").eval()
    rng = np.random.default_rng(0)
    prompts = [rng.integers(3, 300, 12).tolist() for _ in range(groups)]
    rows = []
    for i in range(count):
        group = i % groups
        ids = [*prompts[group], *rng.integers(3, 300, 5 + i).tolist()]
        mask = [0] * 12 + [1] * 3 + [0] * 1 + [1] * (1 + i)
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        logprobs = [0.0] + [float(logits[t - 1, ids[t]]) for t in range(1, len(ids))]
        sample = Sample(
            id=f"r{i}#0",
            trajectory=f"r{i}",
            input_ids=ids,
            labels=[t if m else MASKED for t, m in zip(ids, mask, strict=True)],
            logprobs=[(p + noise) if m else 0.0 for p, m in zip(logprobs, mask, strict=True)],
            advantage=1.0 if i % 4 < 2 else -1.0,
            weight_version=1,
        )
        rows.append(Row(sample=sample, group=group, metrics={"reward": float(i % 2)}))
    return rows


class ListSource:
    """Hands out prepared rows: what is tested here is the bridge, not the rollouts."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows, self.versions, self.stopped = list(rows), [], False

    def start(self, weight_version: int) -> None:
        self.versions.append(weight_version)

    def take(self, timeout: float) -> Row | None:
        return self.rows.pop(0) if self.rows else None

    def new_weights(self, version: int) -> None:
        self.versions.append(version)

    def check(self, stale_after: float) -> None:
        raise RuntimeError("no rows left")

    def stop(self) -> None:
        self.stopped = True


class RecordingEngine:
    """Keeps what it was handed."""

    def __init__(self) -> None:
        self.adapters: list[tuple[Path, int]] = []
        self.weights: list[tuple[int, list[str]]] = []

    def info(self) -> EngineInfo:
        return EngineInfo(model="tiny", max_model_len=2048, dtype="float32", weight_version=0)

    def generate(self, prompt_ids: Any, sampling: Sampling, *, conversation: str | None = None) -> Completion:
        raise AssertionError("not asked to sample")

    def forget(self, conversation: str) -> None: ...

    def load_weights(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        self.weights.append((version, [name for name, _ in weights]))

    def load_adapter(self, folder: Path, version: int) -> None:
        assert (folder / "adapter_model.safetensors").exists()
        self.adapters.append((folder, version))

    def close(self) -> None: ...


def train(
    model: Path, out: Path, rows: list[Row], *, lora: bool, steps: int = 2
) -> tuple[Any, Any, Any, list[RatioCheck]]:
    from peft import LoraConfig
    from transformers import AutoTokenizer

    source, engine, ratios = ListSource(rows), RecordingEngine(), []
    config = trl_async.AsyncGRPOConfig(
        output_dir=str(out), use_cpu=True, bf16=False, max_steps=steps, per_device_train_batch_size=4, token_budget=0,
        gradient_accumulation_steps=1, learning_rate=1e-2, max_staleness=100, report_to=[], save_strategy="no",
        gradient_checkpointing=False, logging_steps=1, disable_tqdm=True,
    )  # fmt: skip
    trainer = trl_async.build_trainer(
        model=model,
        tokenizer=AutoTokenizer.from_pretrained(model),
        config=config,
        groups=4,
        source=source,
        engine=engine,
        peft_config=LoraConfig(r=4, target_modules="all-linear") if lora else None,
        on_ratio=ratios.append,
        adapter_root=out / "adapters",
    )
    trainer.train()
    return trainer, source, engine, ratios


@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
def test_ratio_is_one_at_the_first_step_and_moves_after_it(tiny_model: Path, tmp_path: Path, lora: bool) -> None:
    _, source, engine, ratios = train(tiny_model, tmp_path, sample_rows(tiny_model, 12), lora=lora)
    assert ratios[0].abs_ratio < 1e-4 and abs(ratios[0].kl) < 1e-4 and ratios[0].tokens == 4 * 4 + 0 + 1 + 2 + 3
    assert ratios[1].abs_ratio > 1e-3
    assert source.versions == [1, 1, 2, 3] and source.stopped
    if lora:
        assert [v for _, v in engine.adapters] == [1, 2, 3] and not engine.weights
    else:
        assert [v for v, _ in engine.weights] == [1, 2, 3] and "model.norm.weight" in engine.weights[0][1]


def test_adapter_hand_over_leaves_the_base_weights_untouched(tiny_model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    trainer, *_ = train(tiny_model, tmp_path, sample_rows(tiny_model, 12), lora=True)
    before = load_file(tiny_model / "model.safetensors")
    after = dict(trainer.model.get_base_model().named_parameters())
    name = "model.layers.0.self_attn.q_proj"
    assert torch.equal(after[f"{name}.base_layer.weight"], before[f"{name}.weight"])


def test_wrong_logprobs_show_in_the_ratio(tiny_model: Path, tmp_path: Path) -> None:
    *_, ratios = train(tiny_model, tmp_path, sample_rows(tiny_model, 4, noise=0.05), lora=True, steps=1)
    assert ratios[0].abs_ratio == pytest.approx(1 - np.exp(-0.05), rel=1e-2)


def test_tree_attention_equals_one_forward_a_sample(tiny_model: Path) -> None:
    """Gradients too: a shared prefix is forwarded once, and every sample sees exactly its own past."""
    from transformers import AutoModelForCausalLM
    from trl.experimental.async_grpo.packing import TreeRow

    rows = sample_rows(tiny_model, 6)
    packed = TreeRow()
    for row in rows:
        trl_row = trl_async.to_trl(row)
        packed.add(
            {k: getattr(trl_row, k) for k in ("input_ids", "completion_mask", "old_log_probs", "advantage", "group_id")}
        )
    data = packed.pack()
    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float64, attn_implementation="eager")

    plain = torch.cat([logprobs_of(model, row) for row in rows])
    plain.sum().backward()
    plain_grads = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()

    trl_async.use_torch_attention(model)
    tree = {k: data[k] for k in ("tree_kv_index", "tree_cu_seqlens_q", "tree_cu_seqlens_k")}
    logits = model(input_ids=data["input_ids"][None], position_ids=data["position_ids"][None], **tree).logits[0]
    index = data["token_index"]
    packed_logprobs = logits.log_softmax(-1)[index, data["shift_labels"][index]]
    packed_logprobs.sum().backward()

    assert len(data["input_ids"]) < sum(len(r.sample.input_ids) for r in rows)
    torch.testing.assert_close(packed_logprobs, plain, atol=1e-6, rtol=0)  # norms and rotary are float32
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, plain_grads[name], atol=1e-5, rtol=1e-4)


def logprobs_of(model: Any, row: Row) -> torch.Tensor:
    ids = torch.tensor(row.sample.input_ids)
    at = torch.tensor([t for t, label in enumerate(row.sample.labels) if label != MASKED])
    logits = model(ids[None]).logits[0].log_softmax(-1)
    return logits[at - 1, ids[at]]


def test_a_sliding_window_hides_what_is_too_far_back() -> None:
    mask = trl_async.path_mask(2, 5, 2, torch.device("cpu"))
    assert mask.tolist() == [[False, False, True, True, False], [False, False, False, True, True]]


class TestContract:
    """What `trl_async.py` relies on in TRL 1.16. When one fails, read TRL's change before mending."""

    def test_rollout_sample_fields(self) -> None:
        from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

        assert [f.name for f in dataclasses.fields(RolloutSample)] == [
            "prompt", "completion", "input_ids", "completion_mask", "old_log_probs", "advantage", "model_version",
            "group_id", "metrics", "enqueued_at",
        ]  # fmt: skip

    def test_protocols(self) -> None:
        from trl.experimental.async_grpo import async_grpo_trainer as module

        def methods(protocol: type) -> set[str]:
            return {n for n, _ in inspect.getmembers(protocol, inspect.isfunction) if not n.startswith("_")}

        assert methods(module.RolloutWorkerProtocol) == {"start", "stop", "update_model_version", "check_health"}
        assert methods(module.WeightTransferProtocol) == {
            "init_weight_transfer",
            "pause",
            "send_weights",
            "resume",
            "destroy",
        }

    def test_what_the_subclass_overrides(self) -> None:
        from trl.experimental.async_grpo import AsyncGRPOTrainer

        assert list(inspect.signature(AsyncGRPOTrainer._sync_weight_merged).parameters) == ["self", "t0"]
        assert list(inspect.signature(AsyncGRPOTrainer._sync_weight).parameters) == ["self"]
        source = inspect.getsource(AsyncGRPOTrainer.compute_loss)
        for name in ("token_index", "old_log_probs", "shift_labels", "tree_kv_index", "outputs.log_probs"):
            assert name in source

    def test_attention_gets_the_tree(self) -> None:
        from trl.experimental.async_grpo.packing import tree_attention

        theirs, ours = (set(inspect.signature(f).parameters) for f in (tree_attention, trl_async.tree_attention))
        assert {"tree_kv_index", "tree_cu_seqlens_q", "tree_cu_seqlens_k"} <= theirs & ours

    def test_the_version_that_is_pinned(self) -> None:
        import trl

        assert trl.__version__.startswith("1.16."), "read the release notes, then this file"
