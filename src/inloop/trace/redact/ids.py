"""Token ids without the secret: ids outside the redacted spans stay as sampled, the span is encoded anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from inloop.trace.check import Tokenizer
from inloop.trace.redact.text import Edit, edited
from inloop.trace.trajectory import Node


def decode(tokenizer: Tokenizer, ids: list[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def splice(node: Node, tokenizer: Tokenizer, edits_of: Callable[[str], list[Edit]]) -> bool:
    """Replace what `edits_of` finds in the decoded ids; False when the ids can't be mended, then drop them.

    New ids get the log-probability 0.0 and a span in `untrained_ids`. The result decodes to the edited text."""
    ids = node.token_ids or []
    text = decode(tokenizer, ids)
    edits = _edits(tokenizer, ids, text, edits_of)
    if not edits:
        return True
    cuts = _cuts(tokenizer, ids, text, edits)
    if cuts is None:
        return False
    out: list[int] = []
    logprobs: list[float] = []
    spans: list[tuple[int, int]] = []
    at = 0
    for cut in cuts:
        out += ids[at : cut.first]
        logprobs += (node.logprobs or [])[at : cut.first]
        new = edited(text[cut.begins : cut.ends], [e.moved(-cut.begins) for e in cut.edits])
        fresh = [int(i) for i in tokenizer.encode(new, add_special_tokens=False)]
        spans.append((len(out), len(out) + len(fresh)))
        out += fresh
        logprobs += [0.0] * len(fresh)
        at = cut.last
    out += ids[at:]
    logprobs += (node.logprobs or [])[at:]
    if decode(tokenizer, out) != edited(text, edits):
        return False
    node.token_ids, node.untrained_ids = out, spans
    node.logprobs = logprobs if node.logprobs is not None else None
    return True


def _edits(tokenizer: Tokenizer, ids: list[int], text: str, edits_of: Callable[[str], list[Edit]]) -> list[Edit]:
    """Looked for between special tokens: a turn's end is no part of the secret that stands before it."""
    special = set(getattr(tokenizer, "all_special_ids", ()))
    marks = [i for i, token in enumerate(ids) if token in special]
    if not marks:
        return edits_of(text)
    edges = [0, *(edge for i in marks for edge in (i, i + 1)), len(ids)]
    runs = [decode(tokenizer, ids[a:b]) for a, b in pairwise(edges)]
    if "".join(runs) != text:  # a tokenizer whose tokens read otherwise by themselves
        return edits_of(text)
    out: list[Edit] = []
    at = 0
    for number, run in enumerate(runs):
        if number % 2 == 0:  # the others are the special tokens
            out += [edit.moved(at) for edit in edits_of(run)]
        at += len(run)
    return out


@dataclass(slots=True)
class _Cut:
    """Ids [first, last) decode to the characters [begins, ends), which hold `edits`."""

    first: int
    last: int
    begins: int
    ends: int
    edits: list[Edit]


def _cuts(tokenizer: Tokenizer, ids: list[int], text: str, edits: list[Edit]) -> list[_Cut] | None:
    """The tokens that hold a character of a span, as a whole; spans that share a token are one cut."""
    out: list[_Cut] = []
    for edit in edits:
        first = _before(tokenizer, ids, text, edit.start)
        last = _after(tokenizer, ids, text, edit.end)
        if first is None or last is None:
            return None
        if out and first[0] < out[-1].last:
            out[-1].last, out[-1].ends = last
            out[-1].edits.append(edit)
        else:
            out.append(_Cut(first[0], last[0], first[1], last[1], [edit]))
    return out


def _before(tokenizer: Tokenizer, ids: list[int], text: str, at: int) -> tuple[int, int] | None:
    """(n, length) of the longest run of first ids that decodes to a beginning of `text` not beyond `at`."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high + 1) // 2
        if len(decode(tokenizer, ids[:middle])) <= at:
            low = middle
        else:
            high = middle - 1
    for n in range(low, max(low - 8, -1), -1):  # an id may end inside a character
        said = decode(tokenizer, ids[:n])
        if len(said) <= at and text.startswith(said):
            return n, len(said)
    return None


def _after(tokenizer: Tokenizer, ids: list[int], text: str, at: int) -> tuple[int, int] | None:
    """(n, length) of the shortest run of first ids that decodes to a beginning of `text` not short of `at`."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if len(decode(tokenizer, ids[:middle])) >= at:
            high = middle
        else:
            low = middle + 1
    for n in range(low, min(low + 8, len(ids)) + 1):
        said = decode(tokenizer, ids[:n])
        if len(said) >= at and text.startswith(said):
            return n, len(said)
    return None
