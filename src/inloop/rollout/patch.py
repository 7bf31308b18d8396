"""What an agent changed, as a unified diff for people; nothing is decided by it."""

from __future__ import annotations

import difflib
from pathlib import Path

from inloop.harness.clip import clip
from inloop.sandbox.base import Diff

LIMIT = 65_536


def unified(workspace: Path, diff: Diff) -> str:
    """Against the pristine workspace; binary files are named, very long diffs are clipped."""
    pieces = [_file(path, _old(workspace, path), new) for path, new in sorted(diff.changed.items())]
    pieces += [_file(path, _old(workspace, path), None) for path in sorted(diff.deleted)]
    return clip("".join(pieces), LIMIT)


def _old(workspace: Path, path: str) -> bytes | None:
    file = workspace / path
    return file.read_bytes() if file.is_file() and not file.is_symlink() else None


def _file(path: str, old: bytes | None, new: bytes | None) -> str:
    if old == new:
        return ""
    before, after = (f"a/{path}" if old is not None else "/dev/null"), (f"b/{path}" if new is not None else "/dev/null")
    if _no_text(old or b"") or _no_text(new or b""):
        return f"Binary files {before} and {after} differ\n"
    lines = difflib.unified_diff(_lines(old), _lines(new), before, after)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _no_text(data: bytes) -> bool:
    """What a patch could not carry exactly: a stored diff is judged again later."""
    try:
        return "\0" in data.decode()
    except UnicodeDecodeError:
        return True


def _lines(data: bytes | None) -> list[str]:
    """By line feeds alone: a form feed or a Unicode separator does not end a line of a patch."""
    pieces = (data or b"").decode().split("\n")
    return [f"{line}\n" for line in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
