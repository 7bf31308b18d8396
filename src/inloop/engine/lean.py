"""A lean pass for models shaped like Llama (Llama, Mistral, Qwen2, Qwen3, SmolLM): fused projections, packed weights.

The fused weights and the model's parameters are one memory: new weights go in through the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, rms_norm, silu

from inloop.engine.batch import Batch
from inloop.engine.cache import Attention, KVCache
from inloop.engine.forward import Slotted

FAMILY = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
FIXED_ROPE = ("default", "linear", "llama3", "yarn")
"""Rotary tables that do not depend on the length of the input."""
PACK_BYTES = 2 << 30
"""Weights are kept a second time in oneDNN's blocked layout up to this size: a fifth quicker at 8 to 16 rows."""


class Projection:
    """One matrix product made of several linear layers side by side."""

    def __init__(self, layers: Sequence[Any]) -> None:
        fused = torch.cat([layer.weight.data for layer in layers]) if len(layers) > 1 else layers[0].weight.data
        biases = [layer.bias for layer in layers]
        self.weight = fused
        self.bias: Tensor | None = None
        if any(b is not None for b in biases):
            parts = [
                layer.weight.new_zeros(len(layer.weight)) if b is None else b.data
                for layer, b in zip(layers, biases, strict=True)
            ]
            self.bias = torch.cat(parts)
        self._share(layers)
        self.packed: Tensor | None = None

    def _share(self, layers: Sequence[Any]) -> None:
        row = 0
        for layer in layers:
            rows = slice(row, row + len(layer.weight))
            layer.weight.data = self.weight[rows]
            if layer.bias is not None and self.bias is not None:
                layer.bias.data = self.bias[rows]
            row = rows.stop

    def pack(self) -> None:
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, 16)

    def __call__(self, x: Tensor) -> Tensor:
        """(T, in) -> (T, out)."""
        if self.packed is None:
            return linear(x, self.weight, self.bias)
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return out


class Layer:
    """The parts of one decoder layer, as the pass uses them."""

    def __init__(self, layer: Any) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.index: int = attention.layer_idx
        self.before_attention, self.before_mlp = Norm(layer.input_layernorm), Norm(layer.post_attention_layernorm)
        self.qkv = Projection([attention.q_proj, attention.k_proj, attention.v_proj])
        self.out = Projection([attention.o_proj])
        self.gate_up = Projection([mlp.gate_proj, mlp.up_proj])
        self.down = Projection([mlp.down_proj])
        self.q_norm = Norm(attention.q_norm) if hasattr(attention, "q_norm") else None
        self.k_norm = Norm(attention.k_norm) if hasattr(attention, "k_norm") else None
        self.scale: float = attention.scaling
        everywhere = getattr(attention.config, "sliding_window", None)
        self.window: int | None = getattr(attention, "sliding_window", everywhere)

    @property
    def projections(self) -> list[Projection]:
        return [self.qkv, self.out, self.gate_up, self.down]


class Norm:
    def __init__(self, module: Any) -> None:
        self.weight, self.eps = module.weight, module.variance_epsilon

    def __call__(self, x: Tensor) -> Tensor:
        """In half precision it rounds where transformers does, or log-probabilities drift apart over the layers."""
        if x.dtype is torch.float32:
            return rms_norm(x, self.weight.shape, self.weight, self.eps)
        return self.weight * rms_norm(x.float(), self.weight.shape, None, self.eps).to(x.dtype)


class LeanForward(Slotted):
    def __init__(self, model: Any, cache: KVCache) -> None:
        super().__init__(cache)
        config = model.config
        if type(model).__name__ not in FAMILY or config.hidden_act != "silu":
            raise NotImplementedError(f"{type(model).__name__} is not of the Llama family")
        if config.rope_parameters["rope_type"] not in FIXED_ROPE:
            raise NotImplementedError("rotary tables that change with the length")
        self.head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.embed = model.model.embed_tokens.weight
        self.layers = [Layer(layer) for layer in model.model.layers]
        self.norm = Norm(model.model.norm)
        self.head = Projection([model.lm_head]) if model.lm_head.weight is not self.embed else _tied(model)
        self.cos, self.sin = _rotary_tables(model, cache.length)
        self.packs = sum(p.nbytes for p in model.parameters()) <= PACK_BYTES and _can_pack(self.embed.dtype)
        self.weights_changed()

    def weights_changed(self) -> None:
        if self.packs:
            for projection in [*(p for layer in self.layers for p in layer.projections), self.head]:
                projection.pack()

    def logits(self, batch: Batch) -> Tensor:
        attention = Attention(self.cache, batch)
        cos, sin = self.cos[batch.positions, None], self.sin[batch.positions, None]
        x = self.embed[batch.ids]
        for layer in self.layers:
            x += layer.out(self._attend(layer, layer.before_attention(x), cos, sin, attention))
            gate, up = layer.gate_up(layer.before_mlp(x)).chunk(2, dim=-1)
            x += layer.down(silu(gate).mul_(up))
        if not len(batch.last_rows):
            return x.new_empty(0, 0)
        return self.head(self.norm(x[batch.last_rows])).float()

    def _attend(self, layer: Layer, x: Tensor, cos: Tensor, sin: Tensor, attention: Attention) -> Tensor:
        """(T, hidden) -> (T, heads * size)."""
        heads = layer.qkv(x).view(len(x), -1, self.head_size)
        q, k = heads[:, : self.heads], heads[:, self.heads : self.heads + self.kv_heads]
        if layer.q_norm is not None and layer.k_norm is not None:
            q.copy_(layer.q_norm(q))
            k.copy_(layer.k_norm(k))
        turning = heads[:, : self.heads + self.kv_heads]
        turned = turning * cos + turning.roll(self.head_size // 2, -1) * sin
        q, k = turned[:, : self.heads], turned[:, self.heads :]
        v = heads[:, self.heads + self.kv_heads :]
        return attention(layer.index, q, k, v, layer.scale, layer.window).view(len(x), -1)


def _can_pack(dtype: torch.dtype) -> bool:
    """Not every CPU has oneDNN kernels for half precision, nor every build of torch the operator."""
    try:
        torch.ops.mkldnn._reorder_linear_weight(torch.zeros(32, 32, dtype=dtype), 16)
    except (AttributeError, RuntimeError):
        return False
    return True


def _tied(model: Any) -> Projection:
    """The head that is the embedding: one memory, which stays the embedding's."""
    model.lm_head.weight = model.model.embed_tokens.weight
    return Projection([model.lm_head])


def _rotary_tables(model: Any, length: int) -> tuple[Tensor, Tensor]:
    """(length, head size) each, from the model's own module; the sine carries the sign of the rotated half."""
    dummy = model.model.embed_tokens.weight[:1, None]
    cos, sin = model.model.rotary_emb(dummy, torch.arange(length)[None])
    half = sin.shape[-1] // 2
    return cos[0], torch.cat([-sin[0, :, :half], sin[0, :, half:]], -1)
