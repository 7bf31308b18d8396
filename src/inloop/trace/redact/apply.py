"""Redact one trajectory: everywhere in it, before anything of it is written.

Texts, thoughts and call arguments get a placeholder in place of the secret, and its span goes to `Node.untrained`.
Tools, task, agent, harness, events, diff, reward evidence, metadata and file names are cut too. Captured token ids of
a node that holds a secret are spliced when a tokenizer is given; without one they are dropped and the node is wholly
untrained: ids would give the secret back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from inloop.trace.check import Tokenizer
from inloop.trace.redact.find import PLACEHOLDER, Finder, Names
from inloop.trace.redact.ids import splice
from inloop.trace.redact.text import Cutter, Edit, edited, mapped, new_spans, strings
from inloop.trace.trajectory import Node, Trajectory, plain
from inloop.types import Call, Image, Part

_KEPT = {"id", "nodes", "stop", "counts", "timings", "group_id", "seed"}
"""Fields of a trajectory that hold no foreign text."""


@dataclass(slots=True)
class Receipt:
    """What was cut where, never what."""

    cuts: list[dict[str, Any]] = field(default_factory=list)
    """{trajectory, node or field, kind, placeholder, start?, end?}: spans count characters of the new text."""
    dropped_ids: int = 0
    """Nodes whose token ids were dropped."""
    spliced_ids: int = 0

    def kinds(self) -> dict[str, int]:
        out: dict[str, int] = {}
        for cut in self.cuts:
            out[cut["kind"]] = out.get(cut["kind"], 0) + 1
        return dict(sorted(out.items()))


class Redactor:
    def __init__(self, salt: bytes, tokenizer: Tokenizer | None = None, finder: Finder | None = None) -> None:
        self._finder, self._names, self._tokenizer = finder or Finder(), Names(salt), tokenizer

    def text(self, text: str) -> str:
        """One string by itself: a reason, a file name."""
        cutter = self.cutter()
        cutter.learn(text)
        return cutter.clean(text)

    def cutter(self, secrets: dict[str, str] | None = None) -> Cutter:
        """For texts that belong together; `secrets` (text -> kind) are cut as well wherever they stand."""
        made = Cutter(self._finder, self._names)
        made.secrets.update(secrets or {})
        return made

    def trajectory(self, trajectory: Trajectory, cutter: Cutter | None = None) -> Receipt:
        """Redact in place; a `cutter` that is given knows the secrets afterwards."""
        cutter = cutter or self.cutter()
        for text in _texts(trajectory):
            cutter.learn(text)
        receipt = Receipt()
        for node in trajectory.nodes:
            self._node(trajectory.id, node, cutter, receipt)
        outside = self._fields(trajectory, cutter, receipt)
        for node in trajectory.nodes:
            changed = bool(node.untrained) or (outside and node.parent is None)
            if node.token_ids and (receipt.cuts or outside):
                self._ids(node, changed, cutter, receipt)
        return receipt

    def _node(self, trajectory_id: str, node: Node, cutter: Cutter, receipt: Receipt) -> None:
        parts: list[Part] = []
        spans: list[tuple[int, int]] = []
        offset = 0
        moved = _Moved(plain(node.message), node.untrained)
        for part in node.message.parts:
            new, cut = _part(part, cutter)
            for span, edit in cut:
                place = (span[0] + offset, span[1] + offset)
                spans.append(place)
                receipt.cuts.append(
                    {"trajectory": trajectory_id, "node": node.id, "kind": edit.kind, "placeholder": edit.new,
                     "start": place[0], "end": place[1]}
                )  # fmt: skip
            parts.append(new)
            offset += len(_plain(new))
        if spans:
            message = replace(node.message, parts=tuple(parts))
            spans += moved.into(plain(message))
            node.message, node.untrained = message, _union(spans)
        if node.source:
            node.source = (cutter.clean(node.source[0]), node.source[1])

    def _fields(self, trajectory: Trajectory, cutter: Cutter, receipt: Receipt) -> bool:
        """Redact what is not a message; True when what a prompt shows of it (tools, guides) changed."""
        shown = False
        for name in (f.name for f in fields(trajectory) if f.name not in _KEPT):
            old = getattr(trajectory, name)
            if not any(cutter.edits(text) for text in strings(_plain_value(old))):
                continue
            for text in strings(_plain_value(old)):
                receipt.cuts += [
                    {"trajectory": trajectory.id, "field": name, "kind": e.kind, "placeholder": e.new}
                    for e in cutter.edits(text)
                ]
            setattr(trajectory, name, _map(old, cutter.clean))
            shown = shown or name in ("tools", "harness")
        return shown

    def _ids(self, node: Node, changed: bool, cutter: Cutter, receipt: Receipt) -> None:
        if self._tokenizer is None:
            if changed:
                self._drop(node, receipt)
            return
        before = node.token_ids
        if splice(node, self._tokenizer, cutter.edits):
            receipt.spliced_ids += node.token_ids is not before
        else:
            self._drop(node, receipt)

    def _drop(self, node: Node, receipt: Receipt) -> None:
        """Without ids that are known to be clean, nothing of the node is trained."""
        node.token_ids = node.logprobs = None
        node.untrained_ids = []
        size = len(plain(node.message))
        node.untrained = [(0, size)] if size else []
        receipt.dropped_ids += 1


class _Moved:
    """Spans of an older redaction, found again by their placeholders."""

    def __init__(self, text: str, spans: list[tuple[int, int]]) -> None:
        self._names = {text[a:b] for a, b in spans}

    def into(self, text: str) -> list[tuple[int, int]]:
        return [m.span() for m in PLACEHOLDER.finditer(text) if m[0] in self._names]


def _texts(trajectory: Trajectory) -> Iterator[str]:
    for node in trajectory.nodes:
        for part in node.message.parts:
            yield _plain(part)
            if isinstance(part, Call):
                yield part.name
                yield from strings(part.arguments)
    for name in (f.name for f in fields(trajectory) if f.name not in _KEPT):
        yield from strings(_plain_value(getattr(trajectory, name)))


def _plain(part: Part) -> str:
    return part.raw if isinstance(part, Call) else "" if isinstance(part, Image) else part.text


Cuts = list[tuple[tuple[int, int], Edit]]


def _part(part: Part, cutter: Cutter) -> tuple[Part, Cuts]:
    """(the part without secrets, [(span in its new text, edit)])."""
    if isinstance(part, Image):
        return part, []
    if isinstance(part, Call):
        return _call(part, cutter)
    edits = cutter.edits(part.text)
    if not edits:
        return part, []
    return replace(part, text=edited(part.text, edits)), list(zip(new_spans(edits), edits, strict=True))


def _call(call: Call, cutter: Cutter) -> tuple[Part, Cuts]:
    """Raw text and parsed arguments say the same afterwards; escapes may hide in the one what the other shows."""
    edits = cutter.edits(call.raw)
    arguments = mapped(call.arguments, cutter.clean)
    name = cutter.clean(call.name)
    if not edits and arguments == call.arguments:
        return replace(call, name=name), []
    raw = edited(call.raw, edits)
    cuts = list(zip(new_spans(edits), edits, strict=True))
    if call.arguments is not None and not call.embedded and _parsed(raw) != arguments:
        raw = json.dumps(arguments, ensure_ascii=False)
        cuts = [(m.span(), Edit(*m.span(), m[0], m[0].split("_")[1])) for m in PLACEHOLDER.finditer(raw)]
    return replace(call, name=name, raw=raw, arguments=arguments), cuts


def _parsed(raw: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _union(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in sorted(set(spans)):
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def _plain_value(value: Any) -> Any:
    """Dataclasses (a reward) as the values of their fields."""
    if is_dataclass(value) and not isinstance(value, type):
        return [_plain_value(getattr(value, f.name)) for f in fields(value)]
    if isinstance(value, tuple | list):
        return [_plain_value(v) for v in value]
    return value


def _map(value: Any, change: Callable[[str], str]) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: _map(getattr(value, f.name), change) for f in fields(value) if f.name != "verdict"}
        return replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(_map(v, change) for v in value)
    if isinstance(value, list) and any(is_dataclass(v) for v in value):
        return [_map(v, change) for v in value]
    return mapped(value, change)
