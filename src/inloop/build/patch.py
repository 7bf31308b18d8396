"""Unified diffs of byte files, as `patch -p1` and `git apply` read them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping


def make_patch(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> str:
    """What turns `old` into `new`, file by file; binary files can't be in it (ValueError)."""
    out = []
    for path in sorted({*old, *new}):
        before, after = old.get(path), new.get(path)
        if before != after:
            out.append(_file(path, before, after))
    return "".join(out)


def _file(path: str, before: bytes | None, after: bytes | None) -> str:
    a, b = _lines(before), _lines(after)
    names = (f"a/{path}" if before is not None else "/dev/null", f"b/{path}" if after is not None else "/dev/null")
    text = []
    for line in difflib.unified_diff(a, b, *names):
        text.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(text)


def _lines(data: bytes | None) -> list[str]:
    """Split at '\\n' alone: a form feed or a lone '\\r' is no line end for patch."""
    if not data:
        return []
    if b"\0" in data:
        raise ValueError("a binary file can't be in a patch")
    text = data.decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    return [f"{x}\n" for x in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def changed_lines(patch: str) -> tuple[list[str], list[str]]:
    """(removed, added) lines of a patch, without their marks."""
    lines = patch.splitlines()
    removed = [x[1:] for x in lines if x.startswith("-") and not x.startswith("--- ")]
    added = [x[1:] for x in lines if x.startswith("+") and not x.startswith("+++ ")]
    return removed, added
