"""What the trainer's own code makes of a prompt: the checkpoint by transformers in float32, and its base."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inloop.errors import InloopError
from inloop.train.checkpoint import load_checkpoint, load_policy_model
from inloop.train.origin import Origin


class Reference:
    """Log-probabilities under the checkpoint and under its base model, and turns that the base would take."""

    def __init__(self, start: Origin) -> None:
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PEFT and transformers, of each other
            if start.is_checkpoint:
                self._model, _, _ = load_checkpoint(start.tokenizer, dtype=torch.float32)
            else:
                self._model = load_policy_model(start.base, dtype=torch.float32)
        self._model.eval().requires_grad_(False)
        self._adapted = start.adapter is not None
        self._base = self._model if self._adapted else _whole_base(start)

    @property
    def has_base(self) -> bool:
        return self._base is not None

    def logprobs(self, prompt: Sequence[int], answer: Sequence[int], temperature: float) -> list[float]:
        """(T,): of each token of `answer` after `prompt`, by one plain forward."""
        return _score(self._model, prompt, answer, temperature)

    def base_logprobs(self, prompt: Sequence[int], answer: Sequence[int], temperature: float) -> list[float]:
        with self._without():
            return _score(self._base, prompt, answer, temperature)

    def base_turn(
        self, prompt: Sequence[int], *, most: int, stops: Sequence[int], temperature: float, seed: int
    ) -> Any:
        """Ids of a turn that the base model samples; (T,)."""
        import torch

        torch.manual_seed(seed)
        given = torch.tensor([list(prompt)])
        wish = {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
        with self._without(), torch.inference_mode():
            out = self._base.generate(
                input_ids=given, attention_mask=torch.ones_like(given), max_new_tokens=most, top_k=0, top_p=1.0,
                eos_token_id=list(stops), pad_token_id=stops[0], **wish,
            )  # fmt: skip
        ids: list[int] = out[0, len(prompt) :].tolist()
        return ids

    def _without(self) -> contextlib.AbstractContextManager[Any]:
        context: contextlib.AbstractContextManager[Any] = (
            self._model.disable_adapter() if self._adapted else contextlib.nullcontext()
        )
        return context


def _whole_base(start: Origin) -> Any:
    """The base of full weights, where it is still there."""
    import torch

    from inloop.engine.models import resolve_model

    if not start.is_checkpoint or Path(start.about.base_model) == start.tokenizer:
        return None
    try:
        return load_policy_model(resolve_model(start.about.base_model), dtype=torch.float32).eval()
    except InloopError:
        return None


def _score(model: Any, prompt: Sequence[int], answer: Sequence[int], temperature: float) -> list[float]:
    import torch

    ids = torch.tensor([[*prompt, *answer]])
    with torch.inference_mode():
        logits = model(input_ids=ids).logits[0, len(prompt) - 1 : -1].float()
    scaled = logits / temperature if temperature > 0 else logits
    picked = scaled.log_softmax(-1).gather(1, torch.tensor(list(answer))[:, None])[:, 0]
    out: list[float] = picked.tolist()
    return out
