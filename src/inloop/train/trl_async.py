"""TRL's `AsyncGRPOTrainer` behind two public protocols; the only file that touches `trl.experimental`.

Written against TRL 1.16. `tests/train/test_trl_contract.py` fails loudly when what is relied on here changes.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from transformers import AttentionInterface, PreTrainedTokenizerBase, TrainerCallback
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface
from transformers.trainer_callback import PrinterCallback
from transformers.utils import logging
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from trl.experimental.async_grpo import async_rollout_worker as worker_module
from trl.experimental.async_grpo.async_grpo_trainer import save_lora_adapter
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from inloop.data.sample import MASKED, Sample
from inloop.engine.base import Engine
from inloop.train.cpu import cuda_name_not_asked, score_labelled_positions_only

__all__ = [
    "AsyncGRPOConfig", "AsyncGRPOTrainer", "RatioCheck", "RolloutSource", "Row", "Trainer", "build_trainer",
    "harness_worker",
]  # fmt: skip

ATTENTION = "tree_torch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One training row: a context that the engine saw, with the advantage of its rollout."""

    sample: Sample
    group: int
    metrics: dict[str, float]


def to_trl(row: Row) -> RolloutSample:
    sample = row.sample
    mask = np.array([label != MASKED for label in sample.labels], dtype=np.int64)
    mask[0] = 0  # nothing predicts the first token
    return RolloutSample(
        prompt=[],
        completion=[],
        input_ids=np.asarray(sample.input_ids, dtype=np.int64),
        completion_mask=mask,
        old_log_probs=np.asarray(sample.logprobs, dtype=np.float32),
        advantage=float(sample.advantage or 0.0),
        model_version=sample.weight_version or 0,
        group_id=row.group,
        metrics=row.metrics,
        enqueued_at=time.time(),
    )


class RolloutSource(Protocol):
    """What produces rollouts, as this side sees it."""

    def start(self, weight_version: int) -> None: ...

    def take(self, timeout: float) -> Row | None:
        """The next training row; None when there is none within `timeout` seconds."""
        ...

    def new_weights(self, version: int) -> None: ...

    def check(self, stale_after: float) -> None:
        """Raise when the source died or has not moved for `stale_after` seconds."""
        ...

    def stop(self) -> None: ...


class _Buffer(queue.Queue):  # type: ignore[type-arg]
    """The queue that TRL drains, filled on demand, so that no thread holds the trainer's interpreter lock."""

    def __init__(self, source: RolloutSource) -> None:
        super().__init__()
        self._source = source

    def get(self, block: bool = True, timeout: float | None = None) -> RolloutSample:
        row = self._source.take(timeout if timeout is not None else 5.0)
        if row is None:
            raise queue.Empty
        return to_trl(row)


class Worker:
    """TRL's `RolloutWorkerProtocol` over a `RolloutSource`."""

    def __init__(self, source: RolloutSource) -> None:
        self.source = source
        self.rollout_buffer = _Buffer(source)
        self.metrics_queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self.version = 0

    def start(self) -> None:
        self.source.start(self.version)

    def stop(self) -> None:
        self.source.stop()

    def update_model_version(self, model_version: int) -> None:
        self.version = model_version
        self.source.new_weights(model_version)

    def check_health(self, stale_after_s: float) -> None:
        self.source.check(stale_after_s)


class EngineTransfer:
    """TRL's `WeightTransferProtocol` over our engine: full weights by name, or a LoRA adapter as a folder."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.version = 0

    def init_weight_transfer(self) -> None: ...

    def pause(self) -> None: ...

    def send_weights(self, iterator: Iterator[tuple[str, torch.Tensor]]) -> None:
        self.version += 1
        self.engine.load_weights(iterator, self.version)

    def send_adapter(self, folder: Path, version: int) -> None:
        self.version = version
        self.engine.load_adapter(folder, version)

    def resume(self) -> None: ...

    def destroy(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RatioCheck:
    """How far the trainer's log-probabilities are from the engine's, over the trained tokens of one micro-batch."""

    step: int
    tokens: int
    abs_ratio: float
    """Mean |ratio - 1|."""
    kl: float
    """Mean (ratio - 1) - log ratio."""


class Trainer(AsyncGRPOTrainer):  # type: ignore[misc]
    """TRL's trainer with exact adapter hand-over and a per-token check of the ratio."""

    on_ratio: Callable[[RatioCheck], None] | None = None
    on_sync: Callable[[int], None] | None = None
    adapter_root: Path
    model_version: int

    def get_train_dataloader(self) -> DataLoader[Any]:
        """accelerate's dispatcher holds one micro-batch back, which is one step of staleness that nobody counts;
        with one process there is nothing to dispatch."""
        loader = super().get_train_dataloader()
        if self.accelerator.num_processes > 1:
            return loader
        return DataLoader(loader.dataset, batch_size=1, collate_fn=loader.collate_fn)

    def _sync_weight(self) -> None:
        super()._sync_weight()
        if self.on_sync is not None and self.accelerator.is_main_process:
            self.on_sync(self.model_version)

    def compute_loss(self, model: Any, inputs: dict[str, torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        seen: list[torch.Tensor] = []
        hook = model.register_forward_hook(lambda *call: seen.append(call[-1].log_probs.detach()), with_kwargs=True)
        try:
            loss = super().compute_loss(model, inputs, *args, **kwargs)
        finally:
            hook.remove()
        if self.on_ratio is not None and seen:
            self.on_ratio(self._ratio(seen[0], inputs))
        return loss

    def _ratio(self, log_probs: torch.Tensor, inputs: dict[str, torch.Tensor]) -> RatioCheck:
        selected = inputs["token_index"] >= 0
        new = log_probs.flatten()[inputs["token_index"][selected]].double()
        log_ratio = new - inputs["old_log_probs"][selected].double()
        off = log_ratio.exp() - 1
        return RatioCheck(
            self.state.global_step, log_ratio.numel(), float(off.abs().mean()), float((off - log_ratio).mean())
        )

    def _sync_weight_merged(self, t0: float) -> tuple[float, float, float]:
        """Hand the adapter over as it is. TRL merges it into the base weights and subtracts it again, which in
        bfloat16 leaves the base a little different after every sync."""
        if self._adapter_name is None or not hasattr(self.weight_transfer, "send_adapter"):
            marks: tuple[float, float, float] = super()._sync_weight_merged(t0)
            return marks
        self.accelerator.wait_for_everyone()
        version = self.model_version + 1
        folder = self.adapter_root / f"v{version}"
        save_lora_adapter(self.accelerator.unwrap_model(self.model), self.accelerator, self._adapter_name, str(folder))
        saved = time.time()
        if self.accelerator.is_main_process:
            self.weight_transfer.send_adapter(folder, version)
            self.model_version = version
            self.rollout_worker.update_model_version(version)
        return t0, saved, time.time()


def build_trainer(
    *,
    model: Path,
    tokenizer: PreTrainedTokenizerBase,
    config: AsyncGRPOConfig,
    groups: int,
    source: RolloutSource,
    engine: Engine,
    peft_config: Any = None,
    callbacks: Sequence[TrainerCallback] = (),
    on_ratio: Callable[[RatioCheck], None] | None = None,
    on_sync: Callable[[int], None] | None = None,
    adapter_root: Path,
) -> Trainer:
    """A trainer over our source and engine; `groups` only drives TRL's epoch counter."""
    from datasets import Dataset

    score_labelled_positions_only()
    logging.disable_progress_bar()
    prompts = Dataset.from_dict({"prompt": [[{"role": "user", "content": ""}]] * groups})
    with cuda_name_not_asked():
        trainer = Trainer(
            model=str(model),
            args=config,
            train_dataset=prompts,
            processing_class=tokenizer,
            callbacks=list(callbacks),
            peft_config=peft_config,
            rollout_worker=Worker(source),
            weight_transfer=EngineTransfer(engine),
        )
    trainer.remove_callback(PrinterCallback)  # stdout belongs to `--json`
    trainer.on_ratio, trainer.on_sync, trainer.adapter_root = on_ratio, on_sync, adapter_root
    if not torch.cuda.is_available():
        use_torch_attention(trainer.model)
    return trainer


def harness_worker(**kw: Any) -> Any:
    """TRL's own `HarnessRolloutWorker`, also where its vLLM package is not installed: the worker speaks HTTP to the
    engine, and anything with vLLM's surface answers."""
    from trl.experimental.async_grpo.openenv_harness import HarnessRolloutWorker

    with _vllm_not_asked_for():
        return HarnessRolloutWorker(**kw)


@contextlib.contextmanager
def _vllm_not_asked_for() -> Iterator[None]:
    asked = worker_module.is_vllm_available
    worker_module.is_vllm_available = lambda: True
    try:
        yield
    finally:
        worker_module.is_vllm_available = asked


def use_torch_attention(model: Any) -> None:
    """Replace TRL's FlashAttention 3 tree kernel by plain torch; a public transformers interface."""
    AttentionInterface.register(ATTENTION, tree_attention)
    AttentionMaskInterface.register(ATTENTION, lambda **kwargs: None)
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    base.set_attn_implementation(ATTENTION)


def tree_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    tree_kv_index: torch.Tensor | None = None,
    tree_cu_seqlens_q: torch.Tensor | None = None,
    tree_cu_seqlens_k: torch.Tensor | None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Each trie segment attends to the keys of its root-to-segment path: (1, H, N, D) -> (1, N, H, D).

    Work is the sum over segments of queries x path, not the square of the packed row."""
    if tree_kv_index is None or tree_cu_seqlens_q is None or tree_cu_seqlens_k is None:
        out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
        return out, None
    if softcap:
        raise ValueError("models with attention soft-capping need a GPU here (FlashAttention 3)")
    bounds_q, bounds_k = tree_cu_seqlens_q.tolist(), tree_cu_seqlens_k.tolist()
    outs = []
    for q0, q1, k0, k1 in zip(bounds_q[:-1], bounds_q[1:], bounds_k[:-1], bounds_k[1:], strict=True):
        path = tree_kv_index[k0:k1]
        mask = path_mask(q1 - q0, k1 - k0, sliding_window, query.device)
        k, v = key.index_select(2, path), value.index_select(2, path)
        grouped = query.shape[1] != key.shape[1]
        outs.append(
            F.scaled_dot_product_attention(query[:, :, q0:q1], k, v, attn_mask=mask, scale=scaling, enable_gqa=grouped)
        )
    return torch.cat(outs, dim=2).transpose(1, 2).contiguous(), None


def path_mask(queries: int, keys: int, window: int | None, device: torch.device) -> torch.Tensor:
    """Causal, with the queries at the end of the path; (queries, keys), True where attended."""
    at = torch.arange(keys - queries, keys, device=device)[:, None]
    to = torch.arange(keys, device=device)[None]
    mask = to <= at
    return mask & (to > at - window) if window else mask
