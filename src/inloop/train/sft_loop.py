"""The SFT run itself: TRL's trainer, the smoke step before it, checkpoints and measurements on the way."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from datasets.utils.logging import disable_progress_bar
from transformers.trainer_callback import PrinterCallback
from transformers.utils import logging
from trl import SFTConfig

from inloop.data.sample import Header, Sample
from inloop.engine.models import resolve_model
from inloop.errors import InloopError
from inloop.progress import bar
from inloop.train import checkpoint
from inloop.train.cpu import native_bfloat16
from inloop.train.follow import Follow
from inloop.train.lora import lora_config
from inloop.train.run_folder import RunFolder
from inloop.train.sft_settings import Evaluate, SFTSettings, Trained
from inloop.train.sft_trainer import Collator, LeanSFTTrainer


def run(
    folder: RunFolder,
    train: list[Sample],
    held_out: list[Sample],
    header: Header,
    tokenizer: Any,
    settings: SFTSettings,
    evaluate: Evaluate | None,
) -> Trained:
    if settings.threads:
        torch.set_num_threads(settings.threads)
    disable_progress_bar()
    _pad_token(tokenizer)
    what = checkpoint.about(settings.model, tokenizer, full=settings.full, header=header, run=folder.root.name)
    with bar("sft") as progress, _quiet():
        trainer = make_trainer(folder, train, held_out, tokenizer, settings)
        follow = Follow(folder, trainer, what, settings, progress, evaluate)
        trainer.add_callback(follow)
        if settings.smoke:
            folder.event("smoke", **smoke(trainer, settings))
        trainer.train(resume_from_checkpoint=last_state(folder.state))
        follow.finish()
    trained = follow.result()
    folder.event("done", **{k: v for k, v in trained.to_dict().items() if not isinstance(v, Path)})
    return trained


def make_trainer(
    folder: RunFolder, train: list[Sample], held_out: list[Sample], tokenizer: Any, settings: SFTSettings
) -> LeanSFTTrainer:
    gpu = torch.cuda.is_available()
    bf16 = settings.precision == "bf16" or (settings.precision == "auto" and native_bfloat16())
    full_dtype = torch.float32 if settings.full or not bf16 else torch.bfloat16
    adapter = Path(settings.adapter) if settings.adapter else None
    model = checkpoint.load_policy_model(resolve_model(settings.model), adapter, trainable=True, dtype=full_dtype)
    fresh = not settings.full and adapter is None
    arguments = _arguments(folder, train, settings, bf16=bf16, gpu=gpu)
    trainer = LeanSFTTrainer(
        model=model,
        args=arguments,
        train_dataset=dataset(train),
        eval_dataset=dataset(held_out) if held_out else None,
        processing_class=tokenizer,
        peft_config=lora_config(model, settings.lora) if fresh else None,
        data_collator=None if settings.packing else Collator(pad_token_id=tokenizer.pad_token_id),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _arguments(folder: RunFolder, train: list[Sample], settings: SFTSettings, *, bf16: bool, gpu: bool) -> SFTConfig:
    os.environ.setdefault("TRACKIO_DIR", str(folder.root / "trackio"))
    longest = max(len(s.input_ids) for s in train)
    recompute = settings.gradient_checkpointing == "on" or (settings.gradient_checkpointing == "auto" and gpu)
    return SFTConfig(
        output_dir=str(folder.state),
        learning_rate=settings.lr,
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate,
        gradient_checkpointing=recompute,
        # no truncation ever: rows that are too long were dropped, counted, when the samples were built
        max_length=max(settings.pack_tokens, longest) if settings.packing else None,
        packing=settings.packing,
        bf16=bf16,
        use_cpu=not gpu,
        ddp_backend="gloo" if not gpu and int(os.environ.get("WORLD_SIZE", "1")) > 1 else None,
        ddp_find_unused_parameters=False,
        eval_strategy="no",  # `Follow` decides when, so that a resumed run measures at the same steps
        save_strategy="steps",
        save_steps=settings.save_every,
        save_total_limit=2,
        logging_steps=1,
        report_to=["trackio"] if settings.trackio else "none",
        project="inloop",
        run_name=folder.root.name,
        disable_tqdm=True,
        dataloader_pin_memory=gpu,
        seed=settings.seed,
        data_seed=settings.seed,
    )


def dataset(samples: list[Sample]) -> Dataset:
    columns: dict[str, Any] = {"input_ids": [s.input_ids for s in samples], "labels": [s.labels for s in samples]}
    if any(s.weights for s in samples):
        columns["weights"] = [s.weights or [1.0] * len(s.input_ids) for s in samples]
    return Dataset.from_dict(columns)


def smoke(trainer: LeanSFTTrainer, settings: SFTSettings) -> dict[str, Any]:
    """Forward and back over the longest rows; nothing of it stays. Raises InloopError when it does not fit."""
    rows = trainer.train_dataset
    longest = sorted(range(len(rows)), key=lambda i: len(rows[i]["input_ids"]), reverse=True)[: settings.batch]
    random_state = torch.get_rng_state()
    began = time.monotonic()
    batch = trainer._prepare_inputs(trainer.data_collator([rows[i] for i in longest]))
    shape = "x".join(map(str, batch["input_ids"].shape))
    trainer.model.to(trainer.args.device).train()
    try:
        loss = trainer.compute_loss(trainer.model, batch)
        loss.backward()
    except torch.OutOfMemoryError as error:
        raise InloopError(
            f"the longest batch ({shape} tokens) does not fit in memory: {str(error).splitlines()[0]}",
            fix="lower batch and raise accumulate, set gradient_checkpointing = 'on', or lower max_tokens at build",
        ) from None
    value = float(loss.detach())
    trainer.model.zero_grad(set_to_none=True)
    trainer._metrics["train"].clear()
    trainer._total_train_tokens = 0
    torch.set_rng_state(random_state)
    if not torch.isfinite(torch.tensor(value)):
        raise InloopError(f"the loss of the longest batch is {value}", fix="lower the learning rate or the precision")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"shape": shape, "loss": value, "seconds": round(time.monotonic() - began, 2), "peak_mb": peak}


def last_state(states: Path) -> str | None:
    """The newest whole state; one that a crash left half written is removed."""
    whole = []
    for folder in sorted(states.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2])):
        try:
            json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))  # written last
            whole.append(folder)
        except (OSError, ValueError):
            shutil.rmtree(folder)
    return str(whole[-1]) if whole else None


def _pad_token(tokenizer: Any) -> None:
    """Padding is masked and not attended to, so any token will do; TRL only needs one to be named."""
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """TRL and transformers warn of their own future; nothing in that is for who runs this."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
    logging.set_verbosity(before)
