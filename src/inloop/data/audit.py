"""The gate before training: what no sample may be, with the rows where it is. It only reports."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from inloop.data.drops import Drops
from inloop.data.sample import MASKED, Header, Sample, Span

CHECKS = {
    "roles": "only messages that the model sampled bear loss",
    "labels": "a label is the token itself or masked",
    "empty": "every sample has tokens, and some of them train",
    "stop": "every trained turn ends with its stop token, trained",
    "deciding": "the last turn is whole and stays",
    "once": "every sampled message bears loss in one sample, once",
    "length": "nothing is cut: messages cover the sample, and what is left out is counted",
    "decode": "every id is in the vocabulary",
    "template": "the dialect's tokens are only ever appended, and its tokenizer is this one",
    "numbers": "weights, logprobs and advantages are finite and as long as they should be",
}


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    row: int
    """0-based row of the samples file; -1 is the file as a whole."""
    sample: str
    detail: str


@dataclass(slots=True)
class Audit:
    rows: int = 0
    tokens: int = 0
    trained: int = 0
    """Tokens that bear loss."""
    findings: list[Finding] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Check -> why it could not be made."""

    @property
    def ok(self) -> bool:
        return not self.findings

    def find(self, check: str, detail: str) -> None:
        """A finding about the file as a whole."""
        self.findings.append(Finding(check, -1, "", detail))

    def rows_of(self, check: str) -> list[int]:
        return sorted({f.row for f in self.findings if f.check == check})

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "rows": self.rows,
            "tokens": self.tokens,
            "trained_tokens": self.trained,
            "checks": {c: self.state(c) for c in CHECKS},
            "findings": [{k: getattr(f, k) for k in Finding.__slots__} for f in self.findings],
        }

    def state(self, check: str) -> str:
        failed = self.rows_of(check)
        return f"fails in {_rows(failed)}" if failed else self.skipped.get(check, "ok")


def audit(samples: Sequence[Sample], header: Header, *, vocabulary: int = 0, drops: Drops | None = None) -> Audit:
    """Look at every row. `vocabulary`: size of the tokenizer, 0 if it isn't at hand."""
    report = Audit(rows=len(samples))
    if not samples:
        report.findings.append(Finding("empty", -1, "", "no samples at all"))
    if not vocabulary:
        report.skipped["decode"] = "not checked: no tokenizer"
    if not header.stop_ids:
        report.findings.append(Finding("stop", -1, "", "the file names no stop token, so none could be learned"))
    for row, sample in enumerate(samples):
        report.tokens += len(sample.input_ids)
        report.trained += sample.trained
        for check, detail in _faults(sample, header, vocabulary):
            report.findings.append(Finding(check, row, sample.id, detail))
    report.findings += _doubled(samples)
    report.findings += [Finding("length", -1, "", f) for f in _uncounted(samples, drops)]
    if drops is None:
        report.skipped["length"] = "not counted: no drops.json"
    return report


def _rows(rows: list[int]) -> str:
    if rows == [-1]:
        return "the file"
    shown = ", ".join(map(str, [r for r in rows if r >= 0][:8]))
    return f"{len(rows)} rows: {shown}{', ...' if len(rows) > 8 else ''}"


def _faults(sample: Sample, header: Header, vocabulary: int) -> Iterator[tuple[str, str]]:
    yield from _shape(sample, header)
    if len(sample.labels) != len(sample.input_ids):
        return
    for span in sample.spans:
        yield from _span(sample, span, header)
    if not sample.trained:
        yield "empty", "fully masked" if sample.input_ids else "no tokens"
    elif sample.labels[0] != MASKED and sample.trained == 1:
        yield "empty", "only the first token trains, and nothing predicts it"
    if sample.spans:
        yield from _deciding(sample, header)
    if vocabulary and sample.input_ids and not 0 <= min(sample.input_ids) <= max(sample.input_ids) < vocabulary:
        bad = next(i for i, t in enumerate(sample.input_ids) if not 0 <= t < vocabulary)
        yield "decode", f"token {bad}: id {sample.input_ids[bad]} is not among the {vocabulary} of the tokenizer"
    yield from _numbers(sample)


def _shape(sample: Sample, header: Header) -> Iterator[tuple[str, str]]:
    length = len(sample.input_ids)
    if len(sample.labels) != length:
        yield "labels", f"{len(sample.labels)} labels for {length} tokens"
    at = 0
    for span in sample.spans:
        if span.start != at or span.end < span.start:
            yield "length", f"a gap or an overlap at token {at}: message {span.node} starts at {span.start}"
        at = span.end
    if at != length:
        yield "length", f"the messages have {at} tokens, the sample {length}"
    if header.max_tokens and length > header.max_tokens:
        yield "length", f"{length} tokens, above the limit of {header.max_tokens}"


def _span(sample: Sample, span: Span, header: Header) -> Iterator[tuple[str, str]]:
    ids, labels = sample.input_ids[span.start : span.end], sample.labels[span.start : span.end]
    masked = labels.count(MASKED)
    if masked == len(labels):
        if span.trained:
            yield "labels", f"message {span.node} is said to train and is masked"
        return
    if not span.sampled or span.role != "assistant":
        yield "roles", f"{len(labels) - masked} tokens of {span.role} message {span.node} train"
        return
    if not span.trained:
        yield "roles", f"message {span.node} trains, though it should not: {span.why or 'no reason is recorded'}"
    if labels != ids and any(x not in (MASKED, t) for x, t in zip(labels, ids, strict=True)):
        yield "labels", f"message {span.node} has a label that is not its token"
    opening = list(header.opening_ids)
    if opening and sample.input_ids[max(span.start - len(opening), 0) : span.start] != opening:
        yield "roles", f"message {span.node} does not start where the dialect lets the model take over"
    yield from _stop(span, ids, labels, header)


def _stop(span: Span, ids: list[int], labels: list[int], header: Header) -> Iterator[tuple[str, str]]:
    if ids[-1] not in header.stop_ids:
        if not header.mask.get("faulty_turns"):
            yield "stop", f"message {span.node} has no stop token"
    elif labels[-1] == MASKED:
        yield "stop", f"the stop token of message {span.node} is masked"


def _deciding(sample: Sample, header: Header) -> Iterator[tuple[str, str]]:
    last = sample.spans[-1]
    if not last.sampled:
        yield "deciding", f"the sample ends with a {last.role} message, not with a turn of the model"
    elif not last.trained and not last.why:
        yield "deciding", f"the last turn ({last.node}) does not train, and no reason is recorded"
    elif last.trained and not header.mask.get("faulty_turns"):
        tail = sample.input_ids[last.start : last.end][-1:]
        if not tail or tail[0] not in header.stop_ids:
            yield "deciding", f"the last turn ({last.node}) is cut"


def _numbers(sample: Sample) -> Iterator[tuple[str, str]]:
    length = len(sample.input_ids)
    for name in ("weights", "logprobs"):
        values = getattr(sample, name)
        if values is not None and len(values) != length:
            yield "numbers", f"{len(values)} {name} for {length} tokens"
        elif values is not None and not all(map(math.isfinite, values)):
            yield "numbers", f"{name} that are not finite"
    if sample.weights and min(sample.weights) < 0:
        yield "numbers", "a negative weight"
    if sample.logprobs and max(sample.logprobs) > 1e-6:
        yield "numbers", "a logprob above 0"
    if sample.advantage is not None and not math.isfinite(sample.advantage):
        yield "numbers", "an advantage that is not finite"


def _doubled(samples: Sequence[Sample]) -> Iterator[Finding]:
    """The same message trained twice: in two rows, twice in one row, or as an exact copy under another name."""
    owner: dict[tuple[str, str], int] = {}
    content: dict[int, list[int]] = defaultdict(list)
    for row, sample in enumerate(samples):
        for span in sample.spans:
            if not span.trained:
                continue
            first = owner.setdefault((sample.trajectory, span.node), row)
            if first != row:
                yield Finding("once", row, sample.id, f"message {span.node} also trains in row {first}")
        for a, b in _twins(sample):
            yield Finding("once", row, sample.id, f"message {b.node} repeats {a.node} with nothing in between")
        if sample.advantage is not None:  # two rollouts of a group may well say the same
            continue
        key = hash((tuple(sample.input_ids), tuple(sample.labels)))
        for other in content[key]:
            if samples[other].input_ids == sample.input_ids and samples[other].labels == sample.labels:
                yield Finding("once", row, sample.id, f"the same tokens and labels as row {other}")
                break
        content[key].append(row)


def _twins(sample: Sample) -> Iterator[tuple[Span, Span]]:
    """A message that stands twice in one context: by its name, or word for word with no answer in between."""
    seen: dict[str, Span] = {}
    for span in sample.spans:
        if span.node in seen:
            yield seen[span.node], span
        seen[span.node] = span
    turns = [(i, s) for i, s in enumerate(sample.spans) if s.sampled]
    for (i, a), (j, b) in itertools.pairwise(turns):
        same = sample.input_ids[a.start : a.end] == sample.input_ids[b.start : b.end]
        answered = any(s.role in ("tool", "user") for s in sample.spans[i + 1 : j])
        if same and not answered and a.node != b.node:
            yield a, b


def _uncounted(samples: Sequence[Sample], drops: Drops | None) -> Iterator[str]:
    if drops is None:
        return
    yield from drops.faults()
    if drops.samples != len(samples):
        yield f"drops.json counts {drops.samples} samples, the file has {len(samples)}"
    trained = sum(span.trained for s in samples for span in s.spans)
    if drops.trained != trained:
        yield f"drops.json counts {drops.trained} trained messages, the file has {trained}"
