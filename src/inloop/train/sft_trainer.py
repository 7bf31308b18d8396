"""TRL's SFTTrainer with three things changed: the order of the data, a weight a token, and a lean output head."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from trl import SFTTrainer
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from inloop.data.sample import MASKED
from inloop.train.loss import head_loss, plain_head
from inloop.train.prefix import can_share, last_hidden, shared_length

POOL = 32
"""Batches within which samples are put together by length."""


class LengthBatches(torch.utils.data.Sampler):  # type: ignore[misc]
    """Row numbers such that each run of `batch` rows has about one length; the runs come in random order.

    The order depends on the seed and the epoch alone, so a resumed run meets the same batches."""

    def __init__(self, lengths: list[int], batch: int, seed: int, epoch: Callable[[], int]) -> None:
        self.lengths, self.batch, self.seed, self.epoch = lengths, batch, seed, epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        return iter(self.order(self.epoch()))

    def order(self, epoch: int) -> list[int]:
        draw = random.Random(f"{self.seed}/{epoch}")
        rows = list(range(len(self.lengths)))
        draw.shuffle(rows)
        size = self.batch * POOL
        pools = [sorted(rows[i : i + size], key=lambda r: (self.lengths[r], r)) for i in range(0, len(rows), size)]
        runs = [pool[i : i + self.batch] for pool in pools for i in range(0, len(pool), self.batch)]
        whole, short = [r for r in runs if len(r) == self.batch], [r for r in runs if len(r) < self.batch]
        draw.shuffle(whole)  # short runs go last, else they would shift every batch after them
        return [row for run in (*whole, *short) for row in run]


class Collator(DataCollatorForLanguageModeling):  # type: ignore[misc]
    """TRL's collator, with a weight a token where the rows have them."""

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = super().torch_call(examples)
        if any(e.get("weights") for e in examples):
            padded = torch.ones(out["labels"].shape)
            for row, example in enumerate(examples):
                values = example.get("weights") or [1.0] * len(example["input_ids"])
                padded[row, : len(values)] = torch.tensor(values)
            out["weights"] = padded
        return out


class LeanSFTTrainer(SFTTrainer):  # type: ignore[misc]
    """On one CPU process the head projects labelled positions only, once, and what a batch begins with is computed
    once; elsewhere TRL's own fused head does the work."""

    _signature_columns: list[str] | None
    _shares: bool | None = None

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        known = self._signature_columns or []
        self._signature_columns = [*known, *({"weights"} - set(known))]

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows = self.train_dataset if train_dataset is None else train_dataset
        if self.padding_free:  # packed rows all have about one length
            return super()._get_train_sampler(train_dataset)
        lengths = [len(ids) for ids in rows["input_ids"]]
        batch = self.args.train_batch_size * self.accelerator.num_processes
        return LengthBatches(lengths, batch, self.args.seed, lambda: int((self.state.epoch or 0) + 1e-6))

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        weights = inputs.pop("weights", None)
        base = self.accelerator.unwrap_model(model)
        base = base.get_base_model() if hasattr(base, "get_base_model") else base
        head = plain_head(base)
        lean = self.accelerator.num_processes == 1 and self.accelerator.device.type == "cpu" and head is not None
        if lean and not return_outputs:
            return self._lean_loss(base, head, inputs, weights, num_items_in_batch)
        if weights is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        return self._weighted_loss(model, inputs, weights, num_items_in_batch)

    def _lean_loss(self, base: Any, head: Any, inputs: dict[str, Any], weights: Any, items: Any) -> Any:
        labels, mask = inputs["labels"], inputs.get("attention_mask")
        if mask is None:  # packed rows: the positions keep the samples apart
            body = {k: v for k, v in inputs.items() if k != "labels"}
            states, shared = base.base_model(**body, use_cache=False).last_hidden_state, 0
        else:
            if self._shares is None:
                self._shares = can_share(base)
            shared = shared_length(inputs["input_ids"], labels, mask) if self._shares else 0
            states = last_hidden(base.base_model, inputs["input_ids"], mask, shared)
        states, labels = states[:, :-1], labels[:, shared + 1 :]
        known = labels != MASKED
        factor = None if weights is None else weights[:, shared + 1 :][known]
        total, hits = head_loss(states[known], head, labels[known], factor)
        count = known.sum()
        mode = "train" if self.model.training else "eval"
        self._metrics[mode]["mean_token_accuracy"].append((hits / count.clamp(min=1)).item())
        if mode == "train":
            tokens = inputs["attention_mask"].sum() if "attention_mask" in inputs else inputs["input_ids"].numel()
            self._total_train_tokens += int(tokens)
        self._metrics[mode]["num_tokens"] = [self._total_train_tokens]
        return total / torch.as_tensor(count if items is None else items).clamp(min=1)

    def _weighted_loss(self, model: Any, inputs: dict[str, Any], weights: Any, items: Any) -> Any:
        outputs = model(**inputs, use_cache=False, fused_lm_head=True)
        total = -(outputs.log_probs * weights[:, 1:]).sum()
        loss = total / torch.as_tensor(outputs.label_mask.sum() if items is None else items).clamp(min=1)
        return loss * self.accelerator.num_processes if items is not None else loss

    def create_model_card(self, *args: Any, **kw: Any) -> None:
        """A checkpoint of a running run needs none; `inloop export` writes the model card."""
