"""A trajectory is a forest of messages; a root-to-leaf path is one context that the model really saw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from inloop.types import (
    Call,
    Image,
    Message,
    Part,
    Reward,
    StopReason,
    TestOutcome,
    Text,
    Thinking,
    Verdict,
)

FORMAT = 1


@dataclass(slots=True, kw_only=True)
class Node:
    id: str
    parent: str | None
    """None starts a new context (a root): the episode, a sub-agent, what follows a compaction."""
    message: Message
    sampled: bool = False
    """This model, in this run, wrote the message: it alone decides the mask."""
    token_ids: list[int] | None = None
    """Only the tokens that this node adds to its path, template text included; (T,). A path's ids, put one after
    the other, are exactly what the engine saw. A sampled node ends with its stop token where there was one."""
    logprobs: list[float] | None = None
    """Of a sampled node: log-probability of each of `token_ids` under the sampling distribution; (T,)."""
    weight_version: int | None = None
    """The weights that sampled it."""
    untrained: list[tuple[int, int]] = field(default_factory=list)
    """Character spans [start, end) of `plain(message)` that redaction replaced by a placeholder: sorted, disjoint,
    never trained. Token rule: a token that holds at least one character of a span bears no loss."""
    untrained_ids: list[tuple[int, int]] = field(default_factory=list)
    """Index spans [start, end) of `token_ids` that redaction re-encoded: placeholder tokens which nobody sampled.
    Their `logprobs` are 0.0 and mean nothing; they stay in the context and bear no loss."""
    seconds: float | None = None
    time: float | None = None
    """Unix time at which it was written, where the trace says so."""
    source: tuple[str, int] | None = None
    """File and line that it was read from."""


@dataclass(slots=True, kw_only=True)
class Trajectory:
    id: str
    """The rollout id; the store holds each once."""
    nodes: list[Node] = field(default_factory=list)
    task_id: str | None = None
    group_id: str | None = None
    seed: int | None = None
    agent: dict[str, Any] = field(default_factory=dict)
    """name, version."""
    model: str | None = None
    harness: dict[str, Any] = field(default_factory=dict)
    """The resolved harness config and its `hash`."""
    tools: list[dict[str, Any]] = field(default_factory=list)
    """JSON schemas as shown to the model; empty when the trace does not hold them."""
    reward: Reward | None = None
    stop: StopReason | None = None
    counts: dict[str, float] = field(default_factory=dict)
    """turns, sampled_tokens, prompt_tokens, invalid_calls, test_failures, ..."""
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds by what they went to: sampling, tools, tests, waiting, total."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """What the sandbox and the verifier report: limits met, retries, dropped changes."""
    diff: str | None = None
    """Unified diff of the workspace at the end."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Provenance: run, source format, licence, teacher, working directory."""

    def node(self, node_id: str) -> Node:
        return self.by_id()[node_id]

    def by_id(self) -> dict[str, Node]:
        return {n.id: n for n in self.nodes}

    def leaves(self) -> list[Node]:
        """Nodes that nobody continues, in the order in which they were written."""
        parents = {n.parent for n in self.nodes}
        return [n for n in self.nodes if n.id not in parents]

    def path(self, leaf: Node) -> list[Node]:
        """Root to `leaf`."""
        index, out, at = self.by_id(), [leaf], leaf.parent
        while at is not None:
            node = index[at]
            out.append(node)
            at = node.parent
        return out[::-1]

    def paths(self) -> Iterator[list[Node]]:
        for leaf in self.leaves():
            yield self.path(leaf)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        out = {k: getattr(self, k) for k in self.__slots__ if k not in ("nodes", "reward", "stop")}
        out["format"] = FORMAT
        out["reward"] = asdict(self.reward) if self.reward else None
        out["stop"] = self.stop.value if self.stop else None
        out["nodes"] = [_node_to_dict(n) for n in self.nodes]
        return out

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Trajectory:
        kw = {k: data[k] for k in cls.__slots__ if k in data and k not in ("nodes", "reward", "stop")}
        return cls(
            **kw,
            nodes=[_node_from_dict(n) for n in data.get("nodes", [])],
            reward=_reward_from_dict(data["reward"]) if data.get("reward") else None,
            stop=StopReason(data["stop"]) if data.get("stop") else None,
        )


def plain(message: Message) -> str:
    """The strings of the parts one after the other: a text's and a thinking's text, a call's `raw`, an image's ''.

    `Node.untrained` counts its characters; of a message of one text part it is `message.text`."""
    return "".join(p.raw if isinstance(p, Call) else "" if isinstance(p, Image) else p.text for p in message.parts)


_PARTS: dict[str, type[Any]] = {"text": Text, "thinking": Thinking, "image": Image, "call": Call}


def part_to_dict(part: Part) -> dict[str, Any]:
    """Written out by hand: `asdict` copies deeply and takes most of the time of a ledger."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Call):
        out = {"type": "call", "id": part.id, "name": part.name, "arguments": part.arguments, "raw": part.raw}
        return {**out, "embedded": True} if part.embedded else out
    if isinstance(part, Thinking):
        return {"type": "thinking", "text": part.text, "hidden": part.hidden}
    return {"type": "image", "sha256": part.sha256, "media_type": part.media_type}


def part_from_dict(data: dict[str, Any]) -> Part:
    part: Part = _PARTS[data["type"]](**{k: v for k, v in data.items() if k != "type"})
    return part


def message_to_dict(message: Message) -> dict[str, Any]:
    out: dict[str, Any] = {"role": message.role, "parts": [part_to_dict(p) for p in message.parts]}
    for key in ("call_id", "is_error", "origin"):
        if value := getattr(message, key):
            out[key] = value
    return out


def message_from_dict(data: dict[str, Any]) -> Message:
    return Message(**{**data, "parts": tuple(part_from_dict(p) for p in data["parts"])})


def _node_to_dict(node: Node) -> dict[str, Any]:
    out: dict[str, Any] = {"id": node.id, "parent": node.parent, "message": message_to_dict(node.message)}
    for key in (
        "sampled",
        "token_ids",
        "logprobs",
        "weight_version",
        "untrained",
        "untrained_ids",
        "seconds",
        "time",
    ):
        value = getattr(node, key)
        if value is not None and value is not False and not (value == [] and key.startswith("untrained")):
            out[key] = value
    if node.source:
        out["source"] = node.source
    return out


def _node_from_dict(data: dict[str, Any]) -> Node:
    kw = dict(data)
    kw["message"] = message_from_dict(kw["message"])
    for spans in ("untrained", "untrained_ids"):
        kw[spans] = [(a, b) for a, b in kw.get(spans, [])]
    if kw.get("source"):
        kw["source"] = tuple(kw["source"])
    return Node(**kw)


def _reward_from_dict(data: dict[str, Any]) -> Reward:
    kw = dict(data)
    kw["verdict"] = Verdict(kw["verdict"])
    kw["tests"] = tuple(TestOutcome(**t) for t in kw.get("tests", ()))
    kw["evidence"] = tuple(kw.get("evidence", ()))
    return Reward(**kw)
