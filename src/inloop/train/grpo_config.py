"""What a GRPO run is made of; a recipe's `[grpo]` table."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from inloop.harness.config import HarnessConfig
from inloop.rollout.engines import EngineConfig
from inloop.train.groups import RewardConfig
from inloop.train.lora import LoraSettings
from inloop.train.receipt import Thresholds


@dataclass(frozen=True, kw_only=True)
class CurriculumConfig:
    order: Literal["near_half", "uniform"] = "near_half"
    canary_rate: float = 0.0
    """Share of groups that are decoys with a known hole; never trained on."""
    canary_limit: float = 0.25
    """Above this share of exploited decoys, over the last 16 rollouts of them, the run stops."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    split: str = "test"
    every: int = 0
    """Steps between evaluations; 0 is never."""
    tasks: int = 32
    samples: int = 1
    stop_on_decline: bool = True
    """Stop when the held-out score is significantly below the best one."""


@dataclass(frozen=True, kw_only=True)
class GrpoConfig:
    model: str = "smollm2-135m"
    """A checkpoint folder of ours, a model folder, or a name."""
    tasks: Path = Path("tasks")
    split: str = "train"
    steps: int = 10
    groups_per_step: int = 8
    group_size: int = 8
    learning_rate: float = 1e-5
    schedule: Literal["constant", "linear"] = "constant"
    """linear: down to 0 at the last step, so that the last updates, as noisy as any, decide less."""
    warmup_steps: int = 0
    micro_batch: int = 16
    """Samples that one forward packs."""
    clip_low: float = 0.2
    clip_high: float = 0.28
    scale: Literal["std", "none"] = "std"
    weigh: Literal["rollouts", "tokens"] = "rollouts"
    """What counts alike in the loss: every rollout of a group, or every token, where long failures outweigh passes."""
    max_staleness: int = 1
    """Steps between sampling and training; 0 is synchronous."""
    concurrency: int = 32
    """Rollouts in flight."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Of trainer and engine; auto is bfloat16 where the machine multiplies it natively."""
    threads: int = 1
    """Of the trainer; engine and trainer want a core each."""
    save_every: int = 5
    advise_tasks: int = 16
    """Tasks of the advisor's pilot before the first step; 0 leaves it out."""
    advise_samples: int = 4
    seed: int = 0
    wall_seconds: float = 0.0
    """Stop after the step that goes past this, with a checkpoint; 0 is no limit."""
    full: bool = False
    """Train all weights. A checkpoint with an adapter goes on training that adapter."""
    lora: LoraSettings = field(default_factory=LoraSettings)
    """Of a fresh adapter."""
    engine: EngineConfig = field(default_factory=lambda: EngineConfig(max_model_len=2048))
    harness: HarnessConfig | None = None
    """None takes the one that the checkpoint carries."""
    rewards: RewardConfig = field(default_factory=RewardConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    held_out: HeldOut = field(default_factory=HeldOut)
    receipt: Thresholds = field(default_factory=Thresholds)
    report_to: tuple[str, ...] = ()
    """'trackio', or what else transformers reports to."""

    def __post_init__(self) -> None:
        if self.group_size < 2:
            raise ValueError(f"group_size = {self.group_size}: an advantage needs a group of at least 2")
        if (self.groups_per_step * self.group_size) % self.micro_batch:
            raise ValueError(
                f"micro_batch = {self.micro_batch} does not divide groups_per_step x group_size = "
                f"{self.groups_per_step * self.group_size}"
            )

    @property
    def samples_per_step(self) -> int:
        return self.groups_per_step * self.group_size
