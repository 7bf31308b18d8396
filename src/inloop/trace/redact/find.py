"""Secrets in one text, and the placeholders that stand for them."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inloop.files import write_atomic
from inloop.trace.redact.patterns import Rule
from inloop.trace.redact.rules import rules
from inloop.trace.redact.scan import SCANNERS, View

PLACEHOLDER = re.compile(r"REDACTED_[a-z0-9_]+_[0-9a-f]{12}")
WINDOW = 8192
"""Characters that a pattern sees at once, so that no text can make it slow."""
SHORTEST = 6
"""A found string of fewer characters is replaced where it was found, not wherever it stands."""
SHORTEST_NAME = 4
"""The same for the name of a person's account, which is replaced as a whole word only."""


@dataclass(frozen=True, slots=True)
class Found:
    start: int
    end: int
    kind: str
    everywhere: bool


class Finder:
    """The rules and the scanners; safe to share."""

    def __init__(self) -> None:
        self._rules = rules()
        self._hints = sorted({h for r in self._rules for h in r.hints})

    def find(self, text: str) -> list[Found]:
        """Disjoint spans from left to right; where two overlap, the rule that comes first keeps its span."""
        view = View(text)
        present = {h: list(view.places(h)) for h in self._hints if h in view.low}
        found: list[Found] = []
        for rule in self._rules if present or view.runs else ():
            for low, high in _windows(rule, view, present):
                found += _matches(rule, text, low, high)
        for scanner in SCANNERS:
            found += [Found(a, b, kind, kind != "ip") for a, b, kind in scanner(view)]
        return _disjoint([f for f in found if f.kind == "private_key" or not PLACEHOLDER.search(text, f.start, f.end)])


def _windows(rule: Rule, view: View, present: dict[bytes, list[int]]) -> list[tuple[int, int]]:
    """Where a match of `rule` can lie, from left to right and apart."""
    places = sorted(at for hint in rule.hints for at in present.get(hint, ()))
    if not rule.hints:
        places = [start for start, end in view.runs if end - start >= rule.run]
    out: list[tuple[int, int]] = []
    for at in places:
        low, high = max(0, at - rule.before), min(len(view.text), at + rule.after)
        if out and low < out[-1][1] and (high - out[-1][0] <= WINDOW or rule.after > WINDOW):
            out[-1] = (out[-1][0], high)
        else:
            out.append((low, high))
    return out


def _matches(rule: Rule, text: str, low: int, high: int) -> Iterator[Found]:
    for match in rule.pattern.finditer(text, low, high):
        group = rule.group if rule.group == 0 or match[rule.group] is not None else match.lastindex or 0
        start, end = match.span(group)
        if start < end and (rule.accept is None or rule.accept(text[start:end])):
            yield Found(start, end, rule.kind, rule.everywhere)


def _disjoint(found: list[Found]) -> list[Found]:
    """Of what overlaps, what came first in the order of the rules."""
    out: list[Found] = []
    for span in found:
        at = bisect_left(out, span.start, key=lambda f: f.start)
        free_before = at == 0 or out[at - 1].end <= span.start
        if free_before and (at == len(out) or span.end <= out[at].start):
            out.insert(at, span)
    return out


class Names:
    """Placeholders: the same secret has the same one under one salt, and without the salt none can be guessed."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    def placeholder(self, secret: str, kind: str) -> str:
        digest = hmac.new(self._salt, secret.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
        return f"REDACTED_{kind}_{digest[:12]}"


def salt_file() -> Path:
    """Outside every corpus, so that publishing one does not publish the salt."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "inloop" / "redaction.salt"


def load_salt(path: Path | None = None) -> bytes:
    """The salt of this machine's user, made at the first call; keep it to keep placeholders stable."""
    path = path or salt_file()
    if path.is_file() and len(raw := path.read_bytes()) >= 16:
        return raw
    write_atomic(path, secrets.token_bytes(32))
    path.chmod(0o600)
    return path.read_bytes()
