"""Cross-entropy of the labelled positions only, logits and gradient a chunk at a time.

TRL's fused head scores every position where Triton is missing and projects the logits a second time on the way back.
Most tokens of an agent's trace carry no label, so on a CPU that is most of the head's work.

N: labelled positions; H: hidden size; V: vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch

CHUNK = 256
"""Positions whose logits exist at once."""


class _HeadLoss(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, head: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, need: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """-> (weighted sum of the losses, hits); the gradient is made along the way, while the logits are at hand."""
        total = hidden.new_zeros((), dtype=torch.float32)
        hits = torch.zeros((), dtype=torch.long, device=hidden.device)
        of_hidden = torch.empty_like(hidden) if need else None
        of_head = torch.zeros_like(head) if need and head.requires_grad else None
        for at in range(0, len(labels), CHUNK):
            part, target, factor = hidden[at : at + CHUNK], labels[at : at + CHUNK, None], weights[at : at + CHUNK]
            logits = (part @ head.T).float()
            norm = logits.logsumexp(-1, keepdim=True)
            total += (factor * (norm - logits.gather(-1, target))[:, 0]).sum()
            hits += (logits.argmax(-1, keepdim=True) == target).sum()
            if of_hidden is None:
                continue
            slope = logits.sub_(norm).exp_()  # softmax, in the memory of the logits
            slope.scatter_add_(-1, target, torch.full_like(target, -1, dtype=slope.dtype))
            slope = slope.mul_(factor[:, None]).to(head.dtype)
            torch.mm(slope, head, out=of_hidden[at : at + CHUNK])
            if of_head is not None:
                of_head.addmm_(slope.T, part)
        ctx.save_for_backward(of_hidden, of_head)
        ctx.mark_non_differentiable(hits)
        return total, hits

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        of_hidden, of_head = ctx.saved_tensors
        scaled = None if of_hidden is None else of_hidden * grads[0]
        return scaled, None if of_head is None else of_head * grads[0], None, None, None


def head_loss(
    hidden: torch.Tensor, head: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """hidden (N, H), head (V, H), labels and weights (N,) -> (weighted sum of the losses, how many are the argmax)."""
    if weights is None:
        weights = torch.ones(len(labels), device=hidden.device)
    need = torch.is_grad_enabled() and (hidden.requires_grad or head.requires_grad)
    loss, hits = _HeadLoss.apply(hidden, head, labels, weights, need)
    return loss, hits


def plain_head(model: Any) -> torch.Tensor | None:
    """The output head's weight (V, H) where logits are just hidden @ head.T; None where a model does more."""
    text: Any = model.config.get_text_config()
    extras = ("final_logit_softcapping", "logit_scale", "output_multiplier", "lm_head_multiplier", "logits_scaling")
    if any(getattr(text, name, None) is not None for name in extras) or getattr(text, "output_router_logits", False):
        return None
    head: Any = model.get_output_embeddings()
    return None if type(head) is not torch.nn.Linear or head.bias is not None else head.weight
