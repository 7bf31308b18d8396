"""New weights in a live model: named tensors, or a LoRA adapter merged in place and taken out exactly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from inloop.errors import InloopError

PREFIX = "base_model.model."


class Weights:
    """The parameters of a model by checkpoint name. Tied names lead to one tensor."""

    def __init__(self, model: Any) -> None:
        self.named: dict[str, Tensor] = dict(model.named_parameters(remove_duplicate=False))
        self._base: dict[str, Tensor] = {}
        """What the merged adapter changed, as it was."""

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> int:
        """Copy tensors in; all names and shapes are checked first. Returns how many."""
        given = [(name, self._checked(name, tensor), tensor) for name, tensor in weights]
        self.unmerge()
        for _, target, tensor in given:
            target.copy_(tensor)
        return len(given)

    def merge(self, folder: Path) -> None:
        """Base + scale * B @ A for every adapted weight; the adapter before it is taken out first."""
        deltas = read_adapter(folder)
        checked = [(name, self._checked(name, delta), delta) for name, delta in deltas.items()]
        self.unmerge()
        for name, target, delta in checked:
            self._base[name] = target.clone()
            target.copy_((target.float() + delta).to(target.dtype))

    def unmerge(self) -> None:
        """Put the base weights back, bit for bit."""
        for name, tensor in self._base.items():
            self.named[name].copy_(tensor)
        self._base.clear()

    def _checked(self, name: str, tensor: Tensor) -> Tensor:
        target = self.named.get(name)
        if target is None:
            near = ", ".join(sorted(self.named)[:2])
            raise InloopError(
                f"the model has no weight {name!r}", fix=f"send Hugging Face checkpoint names ({near}, ...)"
            )
        if target.shape != tensor.shape:
            raise InloopError(
                f"{name}: {tuple(tensor.shape)} does not fit {tuple(target.shape)}",
                fix="send weights of the model that the engine serves",
            )
        return target


def read_adapter(folder: Path) -> dict[str, Tensor]:
    """Weight name -> what the adapter adds, float32. Raises InloopError for what isn't plain LoRA."""
    config = _adapter_config(folder)
    tensors = load_file(folder / "adapter_model.safetensors")
    parts: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        name, _, kind = key.removeprefix(PREFIX).partition(".lora_")
        if kind not in ("A.weight", "B.weight"):
            raise InloopError(f"{folder}: {key} is not a LoRA matrix", fix="merge the adapter and send whole weights")
        parts.setdefault(name, {})[kind[0]] = tensor.float()
    return {f"{name}.weight": _delta(name, pair, config) for name, pair in parts.items()}


def _delta(name: str, pair: dict[str, Tensor], config: dict[str, Any]) -> Tensor:
    if set(pair) != {"A", "B"}:
        raise InloopError(f"adapter: {name} has only one of its two matrices", fix="save the adapter again")
    rank = pair["A"].shape[0]
    scale = config["lora_alpha"] / (rank**0.5 if config.get("use_rslora") else rank)
    delta = pair["B"] @ pair["A"] * scale
    return delta.T if config.get("fan_in_fan_out") else delta


def _adapter_config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / "adapter_config.json").read_text())
    except (OSError, ValueError) as error:
        raise InloopError(
            f"{folder} is not an adapter: {error}", fix="give a folder that PEFT's save_pretrained wrote"
        ) from error
    if not (folder / "adapter_model.safetensors").is_file():
        raise InloopError(f"{folder} has no adapter_model.safetensors", fix="save the adapter as safetensors")
    odd = [k for k in ("use_dora", "alpha_pattern", "rank_pattern", "modules_to_save", "lora_bias") if config.get(k)]
    if config.get("peft_type") != "LORA" or odd:
        raise InloopError(
            f"{folder}: a {config.get('peft_type')} adapter with {odd or 'no LoRA'} is not supported",
            fix="use plain LoRA, or merge the adapter and load whole weights",
        )
    return config


def read_weights(path: Path) -> list[tuple[str, Tensor]]:
    return list(load_file(path).items())


def settings(dtype: str) -> torch.dtype:
    """'float32', 'bfloat16', 'float16', or 'auto': bfloat16 where this CPU multiplies it natively."""
    if dtype == "auto":
        native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        return torch.bfloat16 if native else torch.float32
    named = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if dtype not in named:
        raise InloopError(f"unknown dtype {dtype!r}", fix="use auto, float32, bfloat16 or float16")
    return named[dtype]
