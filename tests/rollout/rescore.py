"""A plain transformers forward over what an engine sampled: the measure of 'exact'."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from inloop.trace.trajectory import Node, Trajectory


def differences(model: Any, trajectories: Iterable[Trajectory], temperature: float) -> Iterator[float]:
    """|engine - forward| of each sampled token's log-probability; one forward a context, no cache, no batch."""
    import torch

    for trajectory in trajectories:
        for path in trajectory.paths():
            path = to_last_turn(path)
            if not path:
                continue
            ids = [t for n in path for t in n.token_ids or []]
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0].float() / temperature
            logprobs = torch.log_softmax(logits, -1)
            at = 0
            for node in path:
                for i, token in enumerate(node.token_ids or []):
                    if node.sampled and node.logprobs:
                        yield abs(float(logprobs[at + i - 1, token]) - node.logprobs[i])
                at += len(node.token_ids or [])


def to_last_turn(path: list[Node]) -> list[Node]:
    while path and not path[-1].sampled:
        path = path[:-1]
    return path
