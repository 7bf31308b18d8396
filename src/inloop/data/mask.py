"""Which of the sampled messages of a context bear loss, and with what weight; every 'no' has a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Thinking

ELSEWHERE = "trained in another sample"
NO_STOP = "no stop token (cut by the token limit)"
NO_IDS = "sampled message without token ids"
SHOWN = {"staged": "a mistake on purpose", "demo": "a demonstration"}
"""`Message.origin` -> why such a message is only shown: the expert stages mistakes so that it can correct them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskConfig:
    """What bears loss. Only messages that this model sampled can; these options take some of them out."""

    turns: Literal["all", "last", "after_failure"] = "all"
    """all; only the last turn of each context; only the turns after the last tool result that reports an error."""
    thinking: bool = True
    """False masks the thinking of a turn and trains what follows it."""
    turn_weights: tuple[float, ...] = ()
    """Loss weights from the last turn backwards, the final value going on: [1.0, 0.5] halves all but the last."""
    faulty_turns: bool = False
    """True also trains turns that are not worth imitating: arguments that don't parse, a call that got no result,
    thinking that the trace hides, a turn without its stop token. RL trains them: they were sampled."""


RL = MaskConfig(faulty_turns=True)
"""Every sampled token of a rollout, whatever became of it."""


def refusals(path: list[Node], config: MaskConfig) -> dict[str, str]:
    """Sampled node id -> why it bears no loss in this context; nodes that do bear loss are absent."""
    sampled = [i for i, n in enumerate(path) if n.sampled]
    out: dict[str, str] = {}
    first = _first_trained(path, sampled, config)
    answered = {n.message.call_id for n in path}
    for i in sampled:
        node = path[i]
        reason = SHOWN.get(node.message.origin or "", "")
        if i < first:
            reason = "before the last failure" if config.turns == "after_failure" else "not the last turn"
        elif not reason and not config.faulty_turns:
            reason = _fault(node, answered, last=i == sampled[-1])
        if reason:
            out[node.id] = reason
    return out


def _first_trained(path: list[Node], sampled: list[int], config: MaskConfig) -> int:
    if config.turns == "last":
        return sampled[-1] if sampled else 0
    if config.turns == "after_failure":
        failures = [i for i, n in enumerate(path) if n.message.role != "assistant" and n.message.is_error]
        return failures[-1] if failures else 0
    return 0


def _fault(node: Node, answered: set[str | None], *, last: bool) -> str:
    calls = node.message.all_calls
    if any(c.arguments is None for c in calls):
        return "malformed arguments"
    if not last and any(c.id not in answered for c in calls):
        return "a call without a result"
    if any(isinstance(p, Thinking) and p.hidden for p in node.message.parts):
        return "hidden thinking"
    return "" if node.message.parts or node.token_ids else "empty message"


def weights(path: list[Node], trajectory: Trajectory, config: MaskConfig) -> dict[str, float]:
    """Sampled node id -> weight of its loss, where it isn't 1.

    `trajectory.meta['turn_weights']` (node id -> weight) is what the writer of the trace thinks of each turn."""
    given = trajectory.meta.get("turn_weights") or {}
    out: dict[str, float] = {}
    for back, node in enumerate(reversed([n for n in path if n.sampled])):
        weight = float(given.get(node.id, 1.0))
        if config.turn_weights:
            weight *= config.turn_weights[min(back, len(config.turn_weights) - 1)]
        if weight != 1.0:
            out[node.id] = weight
    return out
