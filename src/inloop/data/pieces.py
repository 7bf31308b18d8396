"""A sample as pieces of text that can be looked at: what each token says and whether it trains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inloop.data.sample import MASKED, Sample, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    text: str
    ids: tuple[int, ...]
    """One token; several where only together they are a character."""
    trained: bool
    sampled: bool
    logprob: float | None = None
    """Of a sampled token of a captured rollout; the sum where there are several."""
    weight: float = 1.0


def pieces(sample: Sample, span: Span, tokenizer: Any) -> Iterator[Piece]:
    """The tokens of one message, in order; their texts put together are its decoded text."""
    start = span.start
    for end in range(span.start + 1, span.end + 1):
        text = tokenizer.decode(sample.input_ids[start:end], skip_special_tokens=False)
        torn = text.endswith("\ufffd") and end - start < 4 and end < span.end
        if torn and _same_mask(sample, start, end + 1):
            continue
        yield _piece(sample, span, start, end, text)
        start = end


def _same_mask(sample: Sample, start: int, end: int) -> bool:
    return len({x == MASKED for x in sample.labels[start:end]}) == 1


def _piece(sample: Sample, span: Span, start: int, end: int, text: str) -> Piece:
    known = span.sampled and sample.logprobs is not None
    return Piece(
        text=text,
        ids=tuple(sample.input_ids[start:end]),
        trained=sample.labels[start] != MASKED,
        sampled=span.sampled,
        logprob=sum(sample.logprobs[start:end]) if known and sample.logprobs is not None else None,
        weight=sample.weights[start] if sample.weights else 1.0,
    )


def headline(sample: Sample) -> str:
    """One line about a sample."""
    facts = [f"{len(sample.input_ids)} tokens, {sample.trained} trained"]
    for name in ("reward", "source", "teacher", "licence", "tokens"):
        if (value := sample.meta.get(name)) is not None:
            facts.append(f"{name} {value}")
    if sample.advantage is not None:
        facts.append(f"advantage {sample.advantage:+.3f}")
    if sample.weight_version is not None:
        facts.append(f"weights v{sample.weight_version}")
    return " · ".join(facts)


def aside(span: Span) -> str:
    """What stands beside a message."""
    if not span.sampled:
        return span.role
    return f"{span.role}, trained" if span.trained else f"{span.role}, not trained: {span.why}"
