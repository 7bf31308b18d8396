"""Edits of texts and of plain JSON values."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from inloop.trace.redact.find import SHORTEST, SHORTEST_NAME, Finder, Found, Names


@dataclass(frozen=True, slots=True)
class Edit:
    """[start, end) of a text becomes `new`."""

    start: int
    end: int
    new: str
    kind: str

    def moved(self, by: int) -> Edit:
        return replace(self, start=self.start + by, end=self.end + by)


def edited(text: str, edits: list[Edit]) -> str:
    out, at = [], 0
    for edit in edits:
        out += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join((*out, text[at:]))


def new_spans(edits: list[Edit], offset: int = 0) -> list[tuple[int, int]]:
    """Where the placeholders stand in the edited text."""
    out = []
    for edit in edits:
        out.append((edit.start + offset, edit.start + offset + len(edit.new)))
        offset += len(edit.new) - (edit.end - edit.start)
    return out


class Cutter:
    """Finds what to cut in the texts of one trajectory; a secret found anywhere in it is cut everywhere in it."""

    def __init__(self, finder: Finder, names: Names) -> None:
        self._finder, self._names = finder, names
        self._found: dict[str, list[Found]] = {}
        self.secrets: dict[str, str] = {}
        """secret -> kind, of those that are cut wherever they stand."""

    def learn(self, text: str) -> None:
        if text in self._found or len(text) < 4:
            return
        found = self._found[text] = self._finder.find(text)
        for span in found:
            secret = text[span.start : span.end]
            if span.everywhere and len(secret) >= (SHORTEST if span.kind != "user" else SHORTEST_NAME):
                self.secrets.setdefault(secret, span.kind)
                self._learn_forms(secret, span.kind)

    def _learn_forms(self, secret: str, kind: str) -> None:
        """The same secret as JSON text writes it, and those that are inside it."""
        inner: list[str] = []
        if kind == "cookie":
            inner = [pair.partition("=")[2] for pair in secret.split(";")]
        elif kind == "private_key":
            inner = [row for row in secret.replace("\\n", "\n").split("\n") if len(row) >= 40 and "-----" not in row]
        elif kind == "authorization":
            inner = [_basic(secret)]
        self.secrets.update((s.strip(), kind) for s in inner if len(s.strip()) >= SHORTEST)
        if "\\n" in secret:
            self.secrets.setdefault(secret.replace("\\n", "\n"), kind)
        if "\n" in secret:
            self.secrets.setdefault(secret.replace("\n", "\\n"), kind)

    def edits(self, text: str) -> list[Edit]:
        """Sorted and disjoint."""
        found = self._found.get(text)
        if found is None:
            found = self._finder.find(text) if len(text) >= 4 else []
        spans = [(f.start, f.end, f.kind) for f in found]
        for secret, kind in self.secrets.items():
            if secret in text:
                spans += [(at, at + len(secret), kind) for at in _places(text, secret, whole=kind == "user")]
        return [Edit(a, b, self._names.placeholder(text[a:b], kind), kind) for a, b, kind in _merged(spans)]

    def clean(self, text: str) -> str:
        return edited(text, self.edits(text))


def _basic(secret: str) -> str:
    """The password in basic authorization, which is only encoded."""
    try:
        return base64.b64decode(secret, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _places(text: str, secret: str, *, whole: bool) -> Iterator[int]:
    """Where `secret` stands; a person's name only as a whole word."""
    at = text.find(secret)
    while at >= 0:
        end = at + len(secret)
        if not whole or not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            yield at
        at = text.find(secret, end)


def _merged(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Overlapping spans become one, of the kind of the widest."""
    out: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(set(spans), key=lambda s: (s[0], -s[1])):
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]), out[-1][2])
        else:
            out.append((start, end, kind))
    return out


def strings(value: Any) -> Iterator[str]:
    """Every string in a plain value, keys as well."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(key)
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with every string changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {mapped(k, change): mapped(v, change) for k, v in value.items()}
    if isinstance(value, list):
        return [mapped(v, change) for v in value]
    if isinstance(value, tuple):
        return tuple(mapped(v, change) for v in value)
    return value
