"""SFT speed on a CPU: our trainer against a bare TRL run of the same model, rows, batch and LoRA.

    python benchmarks/sft.py [--model smollm2-135m] [--steps 6] [--rounds 3] [--batch 8]

The contestants take turns, a few steps at a time, in one process of one thread; what is compared is processor time,
which other load on the machine does not change, and wall time is printed beside it. Tokens are those of the samples,
without padding.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _episodes import episodes
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, TrainerCallback
from transformers.utils import logging as transformers_logging
from trl import SFTConfig, SFTTrainer

from inloop.data.builder import Builder
from inloop.data.sample import Sample
from inloop.data.tokens import load_tokenizer
from inloop.engine.models import resolve_model
from inloop.harness.text import TextDialect
from inloop.train.lora import LoraSettings, linear_names
from inloop.train.run_folder import RunFolder
from inloop.train.sft_loop import make_trainer
from inloop.train.sft_settings import SFTSettings

RANK = 32


class Clock(TrainerCallback):
    """Processor and wall seconds of the steps after the first, which warms up."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def on_step_begin(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        self.at = time.process_time(), time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        self.cpu.append(time.process_time() - self.at[0])
        self.wall.append(time.monotonic() - self.at[1])


def rows(model: Path, count: int) -> list[Sample]:
    tokenizer = load_tokenizer(model)
    dialect = TextDialect(tokenizer, ("read", "edit", "test", "submit"))
    builder = Builder(tokenizer=tokenizer, stop_ids=dialect.stop_token_ids, encoder=lambda t: dialect)
    return [s for t in episodes(count) for s in builder.take(t)]


def bare(model: Path, samples: list[Sample], layers: int, steps: int, batch: int, out: Path) -> SFTTrainer:
    """What a person writes who follows TRL's documentation, with the settings that a CPU needs."""
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    blocks = base.config.num_hidden_layers
    lora = LoraConfig(
        r=RANK, lora_alpha=64, target_modules=linear_names(base), task_type="CAUSAL_LM",
        layers_to_transform=list(range(blocks - layers, blocks)) if layers else None,
    )  # fmt: skip
    arguments = SFTConfig(
        output_dir=str(out), learning_rate=1e-3, per_device_train_batch_size=batch, max_steps=steps, max_length=None,
        gradient_checkpointing=False, bf16=False, use_cpu=True, report_to="none", save_strategy="no",
        logging_steps=1000, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    data = Dataset.from_dict({"input_ids": [s.input_ids for s in samples], "labels": [s.labels for s in samples]})
    return SFTTrainer(
        model=base, args=arguments, train_dataset=data, peft_config=lora, processing_class=load_tokenizer(model)
    )


def lean(model: Path, samples: list[Sample], layers: int, steps: int, batch: int, out: Path) -> SFTTrainer:
    settings = SFTSettings(
        model=str(model),
        lora=LoraSettings(rank=RANK, layers=layers),
        batch=batch,
        accumulate=1,
        max_steps=steps,
        save_every=10_000,
    )
    return make_trainer(RunFolder(out), samples, [], load_tokenizer(model), settings)


def measure(make: Callable[[], SFTTrainer]) -> tuple[float, float]:
    """(tokens a processor second, tokens a wall second) over the steps after the first."""
    trainer = make()
    clock = Clock()
    trainer.add_callback(clock)
    seen: list[int] = []
    inner = trainer.compute_loss

    def counted(model: Any, inputs: dict[str, Any], *args: Any, **kw: Any) -> Any:
        seen.append(int(inputs["attention_mask"].sum()))
        return inner(model, inputs, *args, **kw)

    trainer.compute_loss = counted  # type: ignore[method-assign]
    trainer.train()
    del trainer.compute_loss  # a cycle that would keep the model
    gc.collect()
    return sum(seen[1:]) / sum(clock.cpu[1:]), sum(seen[1:]) / sum(clock.wall[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    given = parser.parse_args()
    quieten()
    model = resolve_model(given.model)
    samples = rows(model, given.batch * given.steps * 2)
    tokens, trained = sum(len(s.input_ids) for s in samples), sum(s.trained for s in samples)
    print(f"{len(samples)} samples, {tokens / len(samples):.0f} tokens each, {trained / tokens:.0%} trained")
    print(f"batch {given.batch}, LoRA rank {RANK}, fp32, one thread, {given.rounds} rounds of {given.steps} steps")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        entries = {
            f"{name}, {'all blocks' if not layers else f'last {layers} blocks'}": (make, layers)
            for layers in (0, 18)
            for name, make in (("bare TRL", bare), ("inloop", lean))
        }
        speeds: dict[str, list[tuple[float, float]]] = {name: [] for name in entries}
        for _ in range(given.rounds):
            for name, (make, layers) in entries.items():
                speeds[name].append(
                    measure(lambda m=make, n=layers: m(model, samples, n, given.steps, given.batch, out))
                )
    report(speeds)


def report(speeds: dict[str, list[tuple[float, float]]]) -> None:
    middle = {k: tuple(statistics.median(x[i] for x in v) for i in (0, 1)) for k, v in speeds.items()}
    first = next(iter(middle.values()))
    print(f"{'':32}{'tokens/CPU s':>14}{'tokens/s':>12}{'against bare TRL':>20}")
    for name, (cpu, wall) in middle.items():
        same = middle[name.replace("inloop", "bare TRL")]
        print(f"{name:32}{cpu:14.0f}{wall:12.0f}{cpu / same[0]:12.2f}x same LoRA, {cpu / first[0]:.2f}x all")
    print(json.dumps({k: {"cpu": v[0], "wall": v[1]} for k, v in middle.items()}))


def quieten() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


if __name__ == "__main__":
    main()
