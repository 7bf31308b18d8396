"""What an observation may look like: clipped head and tail, without control characters, binary named as such."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SUMMARY = re.compile(r"^(FAILED|ERROR) (.+)$", re.M)
_COUNT = re.compile(r"^=* ?\d+ [a-z]+(?:, \d+ [a-z]+)* in [\d.]+s", re.M)
BINARY_SHARE = 0.1
"""Share of undecodable or control characters above which output counts as binary."""


def clip(text: str, limit: int) -> str:
    """At most about `limit` characters: two thirds head, one third tail, and how much was cut between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[... {len(text) - head - tail} characters cut ...]\n{text[-tail:]}"


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:8192] or _odd(data[:8192].decode("utf-8", "replace"))


def _odd(text: str) -> bool:
    return len(_CONTROL.findall(text)) + text.count("�") > BINARY_SHARE * len(text)


def printable(text: str) -> str:
    """Without terminal escapes and control characters; binary output is named instead of shown."""
    lines = _ANSI.sub("", text).replace("\r\n", "\n").split("\n")
    shown = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines)  # what a terminal shows after \r
    if "\0" in text or _odd(shown[:8192]):
        return f"[binary output, about {len(text.encode('utf-8', 'replace'))} bytes]"
    return _CONTROL.sub("", shown)


def summarize_tests(output: str, passed: bool) -> str:
    """One line a failing test and the count, as pytest prints them; anything else is left as it is."""
    count = _COUNT.findall(output)
    if passed:
        return "passed" if count else output
    failures = [m[1] for m in _SUMMARY.findall(output)]
    if not failures:
        return output
    return "\n".join([*failures[:10], *([f"and {len(failures) - 10} more"] if len(failures) > 10 else [])])
