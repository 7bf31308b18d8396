"""What TRL needs to train well on a CPU; each piece is a no-op where there is a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


def score_labelled_positions_only() -> None:
    """Let TRL's fused head project only labelled positions, as it does on GPUs.

    TRL 1.16 scores every position where Triton is missing, to spare compiled devices a new shape a batch. Nothing is
    compiled on a CPU, and three quarters of an agent's tokens carry no label. Only the choice of positions changes.
    """
    import torch
    from trl.trainer import utils

    if not torch.cuda.is_available() and hasattr(utils, "_use_triton"):
        utils._use_triton = lambda device: True


@contextlib.contextmanager
def cuda_name_not_asked() -> Iterator[None]:
    """TRL 1.15 and 1.16 ask for the CUDA device's name while `AsyncGRPOTrainer` is built, GPU or not."""
    import torch

    if torch.cuda.is_available():
        yield
        return
    original = torch.cuda.get_device_name
    torch.cuda.get_device_name = lambda device=None: "cpu"
    try:
        yield
    finally:
        torch.cuda.get_device_name = original


def native_bfloat16() -> bool:
    """Whether bfloat16 is the fast one here: on a processor without its instructions it is several times slower."""
    import torch

    from inloop.engine.weights import settings

    return torch.cuda.is_available() or settings("auto") is torch.bfloat16
