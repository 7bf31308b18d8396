"""One rollout for the page: turns, tokens with mask and log-probability, diff, tests, events; hostile text is text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inloop.data.builder import Builder
from inloop.data.mask import RL, refusals
from inloop.data.pieces import pieces
from inloop.data.sample import MASKED, Sample, Span
from inloop.engine.models import cache_folder
from inloop.errors import DataError
from inloop.report.page import said
from inloop.report.scan import Run
from inloop.report.watch import Found, Watched
from inloop.trace.show import Look, clip, visible
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Text, Thinking

LOOK = Look(line=4000, lines=600)
MOST_TOKENS = 6000
"""Of one message; what is beyond is counted."""


class Vocabulary:
    """A tokenizer file without the library that trains: only ids to text."""

    def __init__(self, file: Path) -> None:
        from tokenizers import Tokenizer

        self._inner = Tokenizer.from_file(str(file))

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return str(self._inner.decode(list(ids), skip_special_tokens=skip_special_tokens))


class Vocabularies:
    """The tokenizer of each ledger's model, looked for on this machine only."""

    def __init__(self) -> None:
        self._known: dict[Path, Vocabulary | None] = {}

    def of(self, run: Run, folder: str, trajectory: Trajectory) -> Vocabulary | None:
        """None when none is found whose text is what the model said."""
        for file in candidates(run, folder, trajectory):
            if file not in self._known:
                self._known[file] = _open(file)
            found = self._known[file]
            if found and fits(found, trajectory):
                return found
        return None


def _open(file: Path) -> Vocabulary | None:
    try:
        return Vocabulary(file)
    except Exception:  # the library raises its own bare Exception for a broken file
        return None


def candidates(run: Run, folder: str, trajectory: Trajectory) -> Iterator[Path]:
    models = [r.checkpoint.get("model") for f, r in run.evaluations.items() if f == folder]
    models += [r.checkpoint.get("model") for r in run.evaluations.values()]
    folders = [run.root / folder / "checkpoints" / "last", *sorted(run.root.glob("**/checkpoints/last"))[:4]]
    for name in dict.fromkeys(str(m) for m in (*models, trajectory.model) if m):
        folders += [Path(name), cache_folder() / "models" / name]
    yield from (f / "tokenizer.json" for f in dict.fromkeys(folders) if (f / "tokenizer.json").is_file())


def fits(vocabulary: Vocabulary, t: Trajectory) -> bool:
    """The first sampled message that has ids decodes to its own text."""
    for node in t.nodes:
        if node.sampled and node.token_ids and (text := node.message.text.strip()):
            return text[:40] in vocabulary.decode(node.token_ids)
    return True


def detail(watched: Watched, found: Found, vocabularies: Vocabularies) -> dict[str, Any]:
    t = watched.load(found)
    group = watched.group(found)
    scored = watched.scored(group) if len(group) > 1 else None
    at = [g.entry.id for g in group].index(found.entry.id)
    vocabulary = vocabularies.of(watched.run, found.folder, t)
    return {
        **found.row(),
        "advantage": scored.advantages[at] if scored else None,
        "dropped": scored.dropped if scored else "",
        "peers": [g.key for g in group],
        "model": t.model,
        "agent": t.agent,
        "seed": t.seed,
        "harness": t.harness,
        "counts": t.counts,
        "timings": t.timings,
        "reward": _reward(t),
        "diff": plain(t.diff or ""),
        "events": [{k: plain(str(v)) for k, v in e.items()} for e in t.events],
        "meta": plain(str(t.meta)),
        "vocabulary": vocabulary is not None,
        "turns": turns(t, vocabulary),
    }


def plain(text: str) -> str:
    return clip(visible(text), LOOK)


def _reward(t: Trajectory) -> dict[str, Any] | None:
    if t.reward is None:
        return None
    out = asdict(t.reward)
    out["tests"] = [{k: plain(v) if isinstance(v, str) else v for k, v in o.items()} for o in out["tests"]]
    out["evidence"] = [plain(e) for e in t.reward.evidence]
    return out


def turns(t: Trajectory, vocabulary: Vocabulary | None) -> list[dict[str, Any]]:
    """The messages in order, each once; a new context says so."""
    try:
        paths = list(t.paths())
    except KeyError as error:
        raise DataError(f"{t.id}: a message names a parent that is not there: {error}") from None
    labels, why = trained(t, vocabulary)
    out: list[dict[str, Any]] = []
    seen: set[str] = set()
    for number, path in enumerate(paths):
        refused = refusals(path, RL)
        for node in path:
            if node.id not in seen:
                seen.add(node.id)
                reason = why.get(node.id) or refused.get(node.id, "")
                out.append(_turn(node, number, reason, labels.get(node.id), vocabulary))
    return out


def _turn(
    node: Node, context: int, why: str, labels: list[int] | None, vocabulary: Vocabulary | None
) -> dict[str, Any]:
    message = node.message
    return {
        "node": node.id,
        "context": context,
        "role": message.role,
        "origin": message.origin or "",
        "sampled": node.sampled,
        "trained": node.sampled and not why,
        "why": why,
        "is_error": message.is_error,
        "answers": message.call_id or "",
        "weights": node.weight_version,
        "seconds": node.seconds,
        "parts": [{"kind": _kind(p), "text": plain(said(p))} for p in message.parts],
        "tokens": tokens(node, labels, vocabulary),
        "cut": max(0, len(node.token_ids or ()) - MOST_TOKENS),
    }


def _kind(part: Any) -> str:
    if isinstance(part, Thinking):
        return "thinking"
    return "call" if isinstance(part, Call) else "text" if isinstance(part, Text) else "image"


def trained(t: Trajectory, vocabulary: Vocabulary | None) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Node -> its labels, and node -> why it bears no loss: what reinforcement learning would make of this rollout."""
    builder = Builder(tokenizer=vocabulary, stop_ids=(), config=RL)
    labels: dict[str, list[int]] = {}
    why: dict[str, str] = {}
    try:
        samples = builder.take(t)
    except AttributeError:  # a redacted text can't be placed without the tokenizer
        return {}, {}
    for sample in samples:
        for span in sample.spans:
            mine = sample.labels[span.start : span.end]
            if span.node not in labels or span.trained:
                labels[span.node] = mine
                why[span.node] = "" if span.trained else span.why
    return labels, why


def tokens(node: Node, labels: list[int] | None, vocabulary: Vocabulary | None) -> list[dict[str, Any]] | None:
    """Text, ids, mask and log-probability of each token; None where the rollout holds no ids."""
    ids = (node.token_ids or [])[:MOST_TOKENS]
    if not ids:
        return None
    if labels is None or len(labels) < len(ids):
        labels = ids if node.sampled else [MASKED] * len(ids)
    if vocabulary is None:
        lps: Sequence[float | None] = node.logprobs or [None] * len(ids)
        return [
            {"text": f"⟨{i}⟩", "ids": [i], "trained": y != MASKED, "logprob": lp if node.sampled else None}
            for i, y, lp in zip(ids, labels, lps, strict=False)
        ]
    logprobs = node.logprobs[: len(ids)] if node.logprobs else None
    sample = Sample(id="", trajectory="", input_ids=ids, labels=labels[: len(ids)], logprobs=logprobs)
    span = Span(node=node.id, role=node.message.role, start=0, end=len(ids), sampled=node.sampled)
    return [
        {"text": visible(p.text), "ids": list(p.ids), "trained": p.trained, "logprob": p.logprob}
        for p in pieces(sample, span, vocabulary)
    ]


def side_by_side(watched: Watched, found: Found) -> dict[str, Any]:
    """A group: of each rollout its advantage, what it said in each turn in a line, and its diff."""
    rows = watched.group(found)[:64]
    scored = watched.scored(rows)
    return {
        "folder": found.folder,
        "group": found.entry.group,
        "task": found.entry.task,
        "mean": scored.mean if scored.mean == scored.mean else None,
        "dropped": scored.dropped if len(rows) > 1 else "",
        "rollouts": [
            {**row.row(), "advantage": advantage, "reward": s.reward, **_short(watched.load(row))}
            for row, advantage, s in zip(rows, scored.advantages, scored.scored, strict=True)
        ],
    }


def _short(t: Trajectory) -> dict[str, Any]:
    look = Look(line=160, lines=6)
    texts = ["\n".join(said(p) for p in n.message.parts) for n in t.nodes if n.sampled]
    return {"said": [clip(visible(x), look) for x in texts[:40]], "diff": clip(visible(t.diff or ""), Look(lines=60))}
