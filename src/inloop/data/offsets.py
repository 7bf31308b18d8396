"""Characters to tokens: which tokens of a turn hold any character of a span."""

from __future__ import annotations

from typing import Any

from inloop.trace.trajectory import Node
from inloop.types import Call, Image, Message, Thinking

Span = tuple[int, int]


def token_ends(ids: list[int], tokenizer: Any) -> list[int]:
    """(T,): how many characters the turn has after each token.

    A character whose bytes lie in several tokens counts from the first of them on, so spans never miss one."""
    return [len(tokenizer.decode(ids[: i + 1], skip_special_tokens=False)) for i in range(len(ids))]


def tokens_in(spans: list[Span], ids: list[int], tokenizer: Any) -> list[Span]:
    """Token spans that cover the character spans of `decode(ids)`, on the safe side where a token is shared."""
    ends = token_ends(ids, tokenizer)
    starts = [0, *ends[:-1]]
    out = []
    for start, end in spans:
        hit = [i for i, (a, b) in enumerate(zip(starts, ends, strict=True)) if a < end and max(b, a + 1) > start]
        if hit:
            out.append((hit[0], hit[-1] + 1))
    return out


def place(message: Message, text: str) -> list[Span | None]:
    """Where each part's string stands in `text` (the decoded turn), in order; None where it does not stand there."""
    out: list[Span | None] = []
    at = 0
    for part in message.parts:
        string = part.raw if isinstance(part, Call) else "" if isinstance(part, Image) else part.text
        found = text.find(string, at) if string else at
        if found < 0:
            out.append(None)
            continue
        out.append((found, found + len(string)))
        at = found + len(string)
    return out


def redacted(node: Node, text: str) -> list[Span] | None:
    """The node's `untrained` character spans, moved from `plain(message)` to `text`; None if one can't be placed."""
    places = place(node.message, text)
    out, base = [], 0
    for part, where in zip(node.message.parts, places, strict=True):
        string = part.raw if isinstance(part, Call) else "" if isinstance(part, Image) else part.text
        for start, end in node.untrained:
            inside = (max(start - base, 0), min(end - base, len(string)))
            if inside[0] >= inside[1]:
                continue
            if where is None:
                return None
            out.append((where[0] + inside[0], where[0] + inside[1]))
        base += len(string)
    return out


_TAGS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))


def thinking(message: Message, text: str) -> list[Span] | None:
    """The thinking of a turn with the tags and blank lines round it; None if a part can't be placed."""
    out = []
    for part, where in zip(message.parts, place(message, text), strict=True):
        if not isinstance(part, Thinking) or part.hidden:
            continue
        if where is None:
            return None
        out.append(_widen(where, text))
    return out or _tagged(text)


def _widen(where: Span, text: str) -> Span:
    start, end = where
    for opening, closing in _TAGS:
        head, tail = text[:start].rstrip(), text[end:].lstrip()
        if head.endswith(opening) and tail.startswith(closing):
            start = len(head) - len(opening)
            end = len(text) - len(tail) + len(closing)
            break
    return start, end + len(text[end:]) - len(text[end:].lstrip("\n"))


def _tagged(text: str) -> list[Span]:
    """Thinking that a template writes though the message has none (an empty pair of tags)."""
    for opening, closing in _TAGS:
        start, end = text.find(opening), text.find(closing)
        if 0 <= start < end:
            end += len(closing)
            return [(start, end + len(text[end:]) - len(text[end:].lstrip("\n")))]
    return []
