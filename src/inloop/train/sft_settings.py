"""What an SFT run is told, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from inloop.train.lora import LoraSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SFTSettings:
    model: str = "smollm2-135m"
    """The base model: a name or a folder."""
    adapter: str = ""
    """A checkpoint of that base to go on from; its adapter is trained further."""
    full: bool = False
    """Train all weights instead of an adapter."""
    lora: LoraSettings = field(default_factory=LoraSettings)
    lr: float = 1e-3
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: float = 0.03
    """Share of the steps."""
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    epochs: float = 1.0
    max_steps: int = 0
    """Ends there, whatever `epochs` says; 0 is no limit."""
    wall_seconds: float = 0.0
    """Stop after the step that goes past this, with a checkpoint; 0 is no limit."""
    batch: int = 4
    """Samples (packed rows with `packing`) a process a micro-step: what has to fit in memory at once."""
    accumulate: int = 2
    """Micro-steps a step; the loss is that of one batch of `batch * accumulate` samples."""
    packing: bool = False
    """Fill rows of `pack_tokens` with whole samples, kept apart by the attention."""
    pack_tokens: int = 4096
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    """auto: bf16 on a GPU and on a CPU with its instructions, else fp32."""
    gradient_checkpointing: Literal["auto", "on", "off"] = "auto"
    """auto: on with a GPU. Off on a CPU, where memory is cheap and frozen blocks need no gradients at all."""
    held_out: float = 0.05
    """Share of the tasks whose samples are kept out, for the held-out loss."""
    eval_every: int = 0
    """Steps between held-out measurements; 0 measures once an epoch and at the end."""
    save_every: int = 50
    """Steps between states that a killed run resumes from."""
    smoke: bool = True
    """First try the longest batch, forward and back."""
    threads: int = 0
    """Of this process; 0 leaves it to OMP_NUM_THREADS."""
    trackio: bool = False
    """Also log to trackio, inside the run folder."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.batch < 1 or self.accumulate < 1 or self.save_every < 1 or self.eval_every < 0:
            raise ValueError("batch, accumulate and save_every are at least 1, eval_every at least 0")
        if not 0 <= self.held_out < 1 or self.lr <= 0 or self.epochs <= 0:
            raise ValueError("held_out is in [0, 1); lr and epochs are above 0")
        if self.full and self.adapter:
            raise ValueError("full trains no adapter: give the checkpoint as `model`, or leave `adapter` out")


Evaluate = Callable[[Path], dict[str, float]]
"""A checkpoint folder -> metrics; 'success' (share of held-out tasks solved) decides which checkpoint is best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    run: Path
    steps: int
    loss: float
    """Of the last logged step."""
    held_out_loss: float | None
    success: float | None
    best: Path
    last: Path
    tokens_per_second: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
