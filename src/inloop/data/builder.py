"""Trajectories to samples; the one builder that SFT and RL share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from inloop.data import mask, offsets, provenance, render
from inloop.data.drops import Drops
from inloop.data.mask import MaskConfig
from inloop.data.sample import MASKED, Sample, Span
from inloop.trace.trajectory import Node, Trajectory


def _no_encoder(trajectory: Trajectory) -> None:
    return None


@dataclass(slots=True, kw_only=True)
class Builder:
    """Turns trajectories into samples and keeps count of what it leaves out."""

    tokenizer: Any
    stop_ids: Sequence[int]
    """Tokens that end a turn."""
    encoder: Callable[[Trajectory], render.Encoder | None] = _no_encoder
    """The dialect that renders a text-only trace; None drops it, counted."""
    config: MaskConfig = field(default_factory=MaskConfig)
    max_tokens: int = 0
    """Longer samples are dropped whole: a cut one would lose the turn that decides. 0 is no limit."""
    drops: Drops = field(default_factory=Drops)

    def take(self, trajectory: Trajectory, advantage: float | None = None) -> list[Sample]:
        """The samples of one trajectory, counted; none is counted with the reason. `advantage` makes RL rows."""
        samples = self._samples(trajectory)
        for sample in samples:
            sample.advantage = advantage
        if samples:
            self.drops.kept += 1
            self.drops.samples += len(samples)
        else:
            self.drops.drop("trajectory", trajectory.id, _why_none(trajectory, self.drops))
        return samples

    def _samples(self, trajectory: Trajectory) -> list[Sample]:
        """Each context that ends differently is one; a message that two share trains in the first that keeps it."""
        done: dict[str, str] = {n.id: "in no sample" for n in trajectory.nodes if n.sampled}
        out = []
        for path in trajectory.paths():
            made = self._sample(trajectory, path, done)
            if isinstance(made, str):
                self.drops.drop("sample", f"{trajectory.id}#{path[-1].id}", made)
                done.update({n.id: made for n in path if n.sampled and done[n.id]})
                continue
            out.append(made)
        self._count(done)
        return out

    def _count(self, done: dict[str, str]) -> None:
        self.drops.messages += len(done)
        self.drops.trained += sum(not why for why in done.values())
        self.drops.untrained.update(why for why in done.values() if why)
        # a message that trains once may also stand, masked, in other contexts; that is no loss and isn't counted

    def _sample(self, trajectory: Trajectory, path: list[Node], done: dict[str, str]) -> Sample | str:
        """One context, or why it gives none. `done`: sampled node -> why it does not train yet, '' if it does."""
        path = _to_last_turn(path)
        if not path:
            return "nothing in it was sampled"
        captured = any(n.token_ids is not None for n in path)
        pieces = _captured(path) if captured else self._rendered(path, trajectory)
        if isinstance(pieces, str):
            return pieces
        length = sum(map(len, pieces))
        if self.max_tokens and length > self.max_tokens:
            return f"longer than {self.max_tokens} tokens"
        sample = Sample(
            id=f"{trajectory.id}#{path[-1].id}",
            trajectory=trajectory.id,
            input_ids=[t for piece in pieces for t in piece],
            labels=[MASKED] * length,
            task=trajectory.task_id,
            group=trajectory.group_id,
            meta=_provenance(trajectory, path, captured),
        )
        why = self._label(sample, trajectory, path, pieces, done)
        if not sample.trained:
            return _commonest(why)
        done.update({n: reason for n, reason in why.items() if done[n]})
        _rl_columns(sample, path, pieces)
        return sample

    def _rendered(self, path: list[Node], trajectory: Trajectory) -> list[list[int]] | str:
        encoder = self.encoder(trajectory)
        if encoder is None:
            return "text only, and there is no dialect to render it"
        return render.render(path, encoder)

    def _label(
        self, sample: Sample, trajectory: Trajectory, path: list[Node], pieces: list[list[int]], done: dict[str, str]
    ) -> dict[str, str]:
        """Fill labels, weights and spans; sampled node -> why it bears no loss here, '' where it does."""
        refused = mask.refusals(path, self.config)
        factors = mask.weights(path, trajectory, self.config)
        why: dict[str, str] = {}
        at = 0
        for node, ids in zip(path, pieces, strict=True):
            span = Span(node=node.id, role=node.message.role, start=at, end=at + len(ids), sampled=node.sampled)
            if node.sampled:
                reason = mask.ELSEWHERE if not done[node.id] else refused.get(node.id, "")
                reason = reason or self._train(sample, node, ids, span, factors.get(node.id, 1.0))
                span.trained, span.why = not reason, reason
                why[node.id] = reason
            sample.spans.append(span)
            at += len(ids)
        return why

    def _train(self, sample: Sample, node: Node, ids: list[int], span: Span, weight: float) -> str:
        """Put the node's ids in the labels; or say why not, and leave them masked."""
        if not ids or (ids[-1] not in self.stop_ids and not self.config.faulty_turns):
            return mask.NO_STOP if ids else mask.NO_IDS
        if weight == 0:
            return "weight 0"
        masked = self._masked(node, ids)
        if masked is None:
            return "a redacted or thinking span can't be placed"
        if sum(b - a for a, b in masked) >= len(ids):
            return "all of it is redacted or thinking"
        labels = list(ids)
        for a, b in masked:
            labels[a:b] = [MASKED] * (b - a)
        sample.labels[span.start : span.end] = labels
        if weight != 1.0:
            sample.weights = sample.weights or [1.0] * len(sample.labels)
            sample.weights[span.start : span.end] = [weight] * len(ids)
        return ""

    def _masked(self, node: Node, ids: list[int]) -> list[tuple[int, int]] | None:
        """Token spans within the node that bear no loss; None when one of them can't be placed."""
        spans = list(node.untrained_ids) if node.token_ids is not None else []
        redacted_text = bool(node.untrained) and not spans
        if redacted_text or not self.config.thinking:
            text = self.tokenizer.decode(ids, skip_special_tokens=False)
            found = [offsets.redacted(node, text)] if redacted_text else []
            found += [] if self.config.thinking else [offsets.thinking(node.message, text)]
            if None in found:
                return None
            spans += offsets.tokens_in([s for part in found for s in part or ()], ids, self.tokenizer)
        if node.untrained:
            self.drops.notes["message with a redacted span, which is masked"] += 1
        return _disjoint(spans)


def _why_none(trajectory: Trajectory, drops: Drops) -> str:
    if not trajectory.nodes:
        return "no messages"
    last = next((d for d in reversed(drops.dropped) if d["id"].startswith(f"{trajectory.id}#")), None)
    return f"no sample: {last['reason']}" if last else "no sample"


def _to_last_turn(path: list[Node]) -> list[Node]:
    """Up to the last sampled message: what follows it teaches nothing and costs compute."""
    last = max((i for i, n in enumerate(path) if n.sampled), default=-1)
    return path[: last + 1]


def _captured(path: list[Node]) -> list[list[int]] | str:
    """The sampler's ids as they are. A message that added no tokens of its own has none."""
    if any(n.sampled and n.token_ids is None for n in path):
        return mask.NO_IDS
    if any(n.sampled and n.logprobs is not None and len(n.logprobs) != len(n.token_ids or ()) for n in path):
        return "logprobs and token ids of a message differ in number"
    return [n.token_ids or [] for n in path]


def _rl_columns(sample: Sample, path: list[Node], pieces: list[list[int]]) -> None:
    sampled = [n for n in path if n.sampled]
    if all(n.logprobs is not None for n in sampled):
        sample.logprobs = [
            p
            for n, ids in zip(path, pieces, strict=True)
            for p in (n.logprobs if n.sampled and n.logprobs is not None else [0.0] * len(ids))
        ]
    versions = [n.weight_version for n in sampled if n.weight_version is not None]
    sample.weight_version = min(versions) if versions else None


def _provenance(trajectory: Trajectory, path: list[Node], captured: bool) -> dict[str, Any]:
    return {
        "source": provenance.source(trajectory),
        "licence": provenance.licence(trajectory),
        "teacher": provenance.teacher(trajectory),
        "run": trajectory.meta.get("run"),
        "agent": trajectory.agent.get("name"),
        "reward": trajectory.reward.value if trajectory.reward else None,
        "stop": trajectory.stop.value if trajectory.stop else None,
        "turns": sum(n.sampled for n in path),
        "tokens": "captured" if captured else "rendered",
    }


def _commonest(why: dict[str, str]) -> str:
    reasons = list(why.values())
    return max(reasons, key=reasons.count)


def _disjoint(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
