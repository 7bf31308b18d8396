"""The oracle: a task's solution as the same kind of diff that an agent's work is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from inloop.errors import TaskError
from inloop.sandbox.base import Diff
from inloop.tasks.task import Task

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
LINE = re.compile(r"[^\n]*\n|[^\n]+")
"""Only a line feed ends a line of a patch (str.splitlines knows more)."""
NO_NEWLINE = "\\ No newline at end of file"


def oracle_diff(task: Task) -> Diff:
    """From solution/patch.diff, else solution/files/. Raises TaskError when there is none or it does not apply."""
    patch, files = task.solution / "patch.diff", task.solution / "files"
    if patch.is_file():
        return apply_patch(patch.read_bytes().decode("utf-8", "surrogateescape"), task.workspace, str(patch))
    if files.is_dir():
        found = {p.relative_to(files).as_posix(): p.read_bytes() for p in sorted(files.rglob("*")) if p.is_file()}
        return Diff(changed={n: d for n, d in found.items() if _content(task.workspace / n) != d})
    raise TaskError(f"{task.solution}: no patch.diff and no files/ in it", fix="add solution/patch.diff")


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def apply_patch(text: str, workspace: Path, where: str = "patch") -> Diff:
    """A unified diff, applied exactly: every context line must be there at its line, or TaskError says which is not."""
    changed: dict[str, bytes] = {}
    deleted: list[str] = []
    for old, new, hunks in _files(LINE.findall(text), where):
        before = _content(workspace / old) if old else b""
        if before is None:
            raise TaskError(f"{where}: {old} is not in the workspace", fix="make the patch against the workspace")
        after = _apply(before.decode("utf-8", "surrogateescape"), hunks, f"{where}: {old or new}")
        if new:
            changed[new] = after.encode("utf-8", "surrogateescape")
        if old and old != new:
            deleted.append(old)
    if not changed and not deleted:
        raise TaskError(f"{where}: no changes in it", fix="write a unified diff (diff -u, git diff)")
    return Diff(changed=changed, deleted=tuple(deleted))


Hunk = tuple[int, list[str]]
"""(first line of the old side, 1-based; lines with their marks)."""


def _files(lines: list[str], where: str) -> Iterator[tuple[str, str, list[Hunk]]]:
    at = 0
    while at < len(lines):
        if lines[at].startswith(("Binary files", "GIT binary patch")):
            raise TaskError(f"{where}:{at + 1}: a binary change", fix="put the file into solution/files/ instead")
        if not (lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")):
            at += 1
            continue
        old, new = _path(lines[at], "a/", where), _path(lines[at + 1], "b/", where)
        at += 2
        hunks: list[Hunk] = []
        while at < len(lines) and lines[at].startswith("@@ "):
            hunk, at = _hunk(lines, at, where)
            hunks.append(hunk)
        yield old, new, hunks


def _path(line: str, prefix: str, where: str) -> str:
    name = line[4:].split("\t")[0].rstrip("\r\n").strip('"')
    if name == "/dev/null":
        return ""
    path = PurePosixPath(name.removeprefix(prefix))
    if path.is_absolute() or ".." in path.parts:
        raise TaskError(f"{where}: {name} leaves the workspace", fix="use paths relative to the workspace")
    return path.as_posix()


def _hunk(lines: list[str], at: int, where: str) -> tuple[Hunk, int]:
    match = HUNK.match(lines[at])
    if not match:
        raise TaskError(f"{where}:{at + 1}: not a hunk header", fix="make the patch again")
    old, new = int(match[2] or 1), int(match[4] or 1)
    at += 1
    body: list[str] = []
    while at < len(lines) and (old > 0 or new > 0 or lines[at].startswith(NO_NEWLINE[:2])):
        line = lines[at]
        mark = line[:1]
        if line.startswith(NO_NEWLINE[:2]):
            body[-1] = body[-1].removesuffix("\n")
        elif mark in " -+" or line in ("\n", "\r\n"):
            body.append(line if mark in "-+ " else f" {line}")
            old -= mark != "+"
            new -= mark != "-"
        else:
            break
        at += 1
    if old or new:
        raise TaskError(f"{where}:{at}: the hunk is cut off", fix="make the patch again")
    return (int(match[1]), body), at


def _apply(text: str, hunks: list[Hunk], where: str) -> str:
    source, out, at = LINE.findall(text), [], 0
    for first, body in hunks:
        start = first - 1 if any(line[0] != "+" for line in body) else first
        out += source[at:start]
        at = start
        for line in body:
            mark, content = line[0], line[1:]
            if mark != "+":
                if at >= len(source) or source[at] != content:
                    raise TaskError(f"{where}:{at + 1}: the patch does not fit", fix="make the patch again")
                at += 1
            if mark != "-":
                out.append(content)
    return "".join([*out, *source[at:]])
