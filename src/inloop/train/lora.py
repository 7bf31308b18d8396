"""LoRA over all linear layers, or over those of the last n blocks: what lies below needs no backward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inloop.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSettings:
    rank: int = 32
    alpha: float = 64.0
    """The update is scaled by alpha / rank."""
    layers: int = 0
    """Adapt the last n blocks only; 0 adapts all. Nothing below the first adapted block is differentiated."""
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.rank < 1 or self.layers < 0 or not 0 <= self.dropout < 1:
            raise ValueError("lora: rank is at least 1, layers at least 0, dropout in [0, 1)")


def lora_config(model: Any, settings: LoraSettings) -> Any:
    """The `peft.LoraConfig` for `model`. Raises ConfigError when it has fewer blocks than are asked for."""
    from peft import LoraConfig

    blocks = int(model.config.get_text_config().num_hidden_layers)
    if settings.layers > blocks:
        raise ConfigError(f"lora.layers is {settings.layers}, the model has {blocks} blocks", fix="lower it, or give 0")
    some = settings.layers and settings.layers < blocks
    return LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=linear_names(model),
        layers_to_transform=list(range(blocks - settings.layers, blocks)) if some else None,
        bias="none",
        task_type="CAUSAL_LM",
    )


def linear_names(model: Any) -> list[str]:
    """Last part of the names of the linear layers inside the blocks; the output head is none of them."""
    import torch

    names = {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and any(part.isdigit() for part in name.split("."))
    }
    if not names:
        raise ConfigError("the model has no linear layers that LoRA could adapt", fix="train it in full: full = true")
    return sorted(names)
