"""What a GRPO run starts from: the checkpoint taken apart, the tasks, the engine, the trainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from inloop.data.tokens import load_tokenizer
from inloop.engine.base import Engine
from inloop.errors import ConfigError, DataError, TaskError
from inloop.rollout.engines import EngineConfig, Opened, open_engine
from inloop.tasks.cards import require_cards
from inloop.tasks.taskset import Row, Taskset
from inloop.train import checkpoint, trl_async
from inloop.train.cpu import native_bfloat16
from inloop.train.grpo_config import GrpoConfig
from inloop.train.lora import lora_config
from inloop.train.origin import Origin
from inloop.train.run_folder import RunFolder


def chosen_tasks(config: GrpoConfig, *, allow_unaudited: bool) -> tuple[list[Row], list[Row]]:
    """(training rows, held-out rows) of the index. Raises TaskError for unaudited, missing or shared tasks."""
    taskset = Taskset.open(config.tasks)
    train = [r for r in taskset.rows if r.split == config.split]
    held_out = [r for r in taskset.rows if r.split == config.held_out.split] if config.held_out.every else []
    if not train:
        splits = sorted({r.split or "(none)" for r in taskset.rows})
        raise TaskError(
            f"{config.tasks}: no task of split {config.split!r}", fix=f"there are: {', '.join(splits)}; set grpo.split"
        )
    if shared := {r.unit for r in train} & {r.unit for r in held_out}:
        raise TaskError(
            f"{len(shared)} source units are in both {config.split!r} and {config.held_out.split!r}, such as "
            f"{sorted(shared)[0]}",
            fix="split by source unit: `inloop tasks split`",
        )
    require_cards(taskset.tasks(train), allow_unaudited=allow_unaudited)
    return train, held_out[: config.held_out.tasks]


def with_dtype(config: GrpoConfig) -> GrpoConfig:
    """One precision for trainer and engine: two would show in every ratio. Raises ConfigError for two."""
    asked = {d for d in (config.dtype, config.engine.dtype) if d != "auto"}
    if len(asked) > 1:
        raise ConfigError(
            f"dtype = {config.dtype!r} but engine.dtype = {config.engine.dtype!r}", fix="give one of them"
        )
    fast = "bfloat16" if native_bfloat16() else "float32"
    dtype: Any = asked.pop() if asked else fast
    return replace(config, dtype=dtype, engine=replace(config.engine, dtype=dtype))


def start_engine(config: EngineConfig, start: Origin) -> Opened:
    """The engine that `config` names on the origin's base weights; its adapter is handed over by the trainer."""
    return open_engine(replace(config, model=str(start.base)))


def check_engine(engine: Engine, start: Origin, config: GrpoConfig) -> None:
    """Raises DataError when the engine can't give what the trainer needs."""
    info = engine.info()
    if info.logprobs_mode != "processed_logprobs":
        raise DataError(
            f"the engine reports {info.logprobs_mode}: the trainer needs the distribution that was sampled from",
            fix="start vLLM with --logprobs-mode processed_logprobs",
        )
    if not info.trainable:
        raise DataError("this engine gives no token ids and log-probabilities", fix="use the embedded engine or vLLM")
    served = info.meta.get("fingerprint")
    if served and served != checkpoint.base_fingerprint(start.base):
        raise DataError(f"the engine serves {info.model}, not {start.base}", fix="start it on the run's base model")
    if start.harness.top_p != 1.0:
        raise DataError("harness.top_p must be 1 for training: the trainer scores the whole distribution")


def make_trainer(
    config: GrpoConfig,
    start: Origin,
    folder: RunFolder,
    engine: Engine,
    source: trl_async.RolloutSource,
    *,
    groups: int,
    callbacks: Sequence[TrainerCallback],
    on_ratio: Callable[[trl_async.RatioCheck], None],
    on_sync: Callable[[int], None],
) -> trl_async.Trainer:
    if config.threads and not torch.cuda.is_available():
        torch.set_num_threads(config.threads)
    tokenizer = load_tokenizer(start.tokenizer)
    trainer = trl_async.build_trainer(
        model=start.base,
        tokenizer=tokenizer,
        config=arguments(config, start, folder),
        groups=groups,
        source=source,
        engine=engine,
        peft_config=_peft_config(config, start),
        callbacks=callbacks,
        on_ratio=on_ratio,
        on_sync=on_sync,
        adapter_root=folder.root / "adapters",
    )
    if start.adapter:
        _load_adapter(trainer.model, start.adapter)
    return trainer


def _peft_config(config: GrpoConfig, start: Origin) -> Any:
    from peft import LoraConfig
    from transformers import AutoConfig, AutoModelForCausalLM

    if start.adapter:
        kept = LoraConfig.from_pretrained(str(start.adapter))
        kept.inference_mode = False  # what PEFT writes into every saved adapter, and what would freeze this one
        return kept
    if config.full:
        return None
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(start.base))
    return lora_config(model, config.lora)


def _load_adapter(model: Any, adapter: Path) -> None:
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    outcome = set_peft_model_state_dict(model, load_file(adapter / "adapter_model.safetensors"))
    if outcome.unexpected_keys:
        raise DataError(
            f"{adapter}: the adapter does not fit its base model", fix="give the checkpoint as it was saved"
        )


def arguments(config: GrpoConfig, start: Origin, folder: RunFolder) -> Any:
    """TRL's own config; batching by a fixed count of samples."""
    gpu = torch.cuda.is_available()
    return trl_async.AsyncGRPOConfig(
        output_dir=str(folder.state),
        max_steps=config.steps,
        per_device_train_batch_size=config.micro_batch,
        gradient_accumulation_steps=config.samples_per_step // config.micro_batch,
        num_generations=config.group_size,
        token_budget=0,
        learning_rate=config.learning_rate,
        lr_scheduler_type="linear" if config.schedule == "linear" else "constant_with_warmup",
        warmup_steps=config.warmup_steps,
        epsilon=config.clip_low,
        epsilon_high=config.clip_high,
        temperature=start.harness.temperature,
        max_staleness=max(config.max_staleness, 0),
        dtype=config.dtype,
        bf16=config.dtype == "bfloat16",
        use_cpu=not gpu,
        gradient_checkpointing=gpu,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=2,
        logging_steps=1,
        report_to=list(config.report_to) or "none",
        run_name=folder.root.name,
        disable_tqdm=True,
        seed=config.seed,
        data_seed=config.seed,
        heartbeat_stale_after_s=600.0,
    )
