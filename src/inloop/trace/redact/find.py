"""Secrets in one text, and the placeholders that stand for them."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from inloop.files import write_atomic
from inloop.trace.redact.rules import rules

PLACEHOLDER = re.compile(r"REDACTED_[a-z0-9_]+_[0-9a-f]{12}")
SHORTEST = 6
"""A found string of fewer characters is replaced where it was found, not wherever it stands."""


@dataclass(frozen=True, slots=True)
class Found:
    start: int
    end: int
    kind: str
    everywhere: bool


class Finder:
    """The rules with their hints; safe to share."""

    def __init__(self) -> None:
        every = rules()
        self._always = [r for r in every if not r.hints]
        self._hinted = [r for r in every if r.hints]
        self._order = {id(r): i for i, r in enumerate(every)}

    def find(self, text: str) -> list[Found]:
        """Disjoint spans from left to right; where two rules overlap, the earlier rule keeps its span."""
        low = text.lower()
        hinted = [r for r in self._hinted if any(h in low for h in r.hints)]
        taken: list[Found] = []
        for rule in sorted((*self._always, *hinted), key=lambda r: self._order[id(r)]):
            for match in rule.pattern.finditer(text):
                start, end = match.span(rule.group)
                if start < 0 or start == end or (rule.accept and not rule.accept(text[start:end])):
                    continue
                if PLACEHOLDER.search(text, start, end) is None or rule.kind == "private_key":
                    taken.append(Found(start, end, rule.kind, rule.everywhere))
        return _disjoint(taken)


def _disjoint(found: list[Found]) -> list[Found]:
    out: list[Found] = []
    for span in found:  # in the order of the rules
        if not any(span.start < other.end and other.start < span.end for other in out):
            out.append(span)
    return sorted(out, key=lambda f: f.start)


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
