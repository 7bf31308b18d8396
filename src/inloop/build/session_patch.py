"""An edit, a whole file, an insertion or a `*** Begin Patch` block as new texts of files; data in, data out."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from inloop.build.session_steps import Step

Read = Callable[[str], "str | None"]
Texts = dict[str, "str | None"]
"""Path -> its new text; None deletes it."""


def apply_edits(step: Step, read: Read) -> Texts:
    """Raises ValueError when the step does not fit the files as they are."""
    if step.kind == "write":
        return {step.path: step.text}
    if step.kind == "patch":
        return _patch(step.text, read)
    text = read(step.path)
    if text is None:
        raise ValueError("no such file")
    if step.kind == "insert":
        lines = text.split("\n")
        return {step.path: "\n".join([*lines[: step.line], *step.text.split("\n"), *lines[step.line :]])}
    count = text.count(step.old)
    if not count or (count > 1 and not step.everywhere):
        raise ValueError("the text is not there, or more than once")
    return {step.path: _replaced(text, step)}


def _replaced(text: str, step: Step) -> str:
    """Lines that are replaced by nothing go with their line end, as in the agents' own tools."""
    if step.everywhere:
        return text.replace(step.old, step.text)
    at = text.index(step.old)
    whole = (at == 0 or text[at - 1] == "\n") and text[at + len(step.old) : at + len(step.old) + 1] == "\n"
    old = step.old + "\n" if not step.text and whole and not step.old.endswith("\n") else step.old
    return text.replace(old, step.text, 1)


_HEAD = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = "*** Move to: "


def _patch(patch: str, read: Read) -> Texts:
    out: Texts = {}
    for kind, path, body in _sections(patch):
        if kind == "Delete":
            out[path] = None
        elif kind == "Add":
            out[path] = "".join(f"{line[1:]}\n" for line in body if line.startswith("+"))
        else:
            text = out.get(path) or read(path)
            if text is None:
                raise ValueError("no such file")
            target = body[0].removeprefix(_MOVE).strip() if body and body[0].startswith(_MOVE) else path
            if target != path:
                out[path] = None
            out[target] = _updated(text, [line for line in body if not line.startswith("*** ")])
    if not out:
        raise ValueError("an empty patch")
    return out


def _sections(patch: str) -> Iterator[tuple[str, str, list[str]]]:
    kind, path = "", ""
    body: list[str] = []
    for line in patch.split("\n")[1:-1]:
        if head := _HEAD.fullmatch(line.rstrip()):
            if kind:
                yield kind, path, body
            kind, path, body = head[1], head[2].strip(), []
        else:
            body.append(line)
    if kind:
        yield kind, path, body


def _updated(text: str, body: list[str]) -> str:
    """Chunks are found by their old lines, each after the one before it. Raises ValueError."""
    lines, at = text.split("\n"), 0
    for anchor, chunk in _chunks(body):
        if anchor:
            at = next((i + 1 for i in range(at, len(lines)) if lines[i].strip() == anchor), at)
        old = [line[1:] for line in chunk if not line.startswith("+")]
        new = [line[1:] for line in chunk if not line.startswith("-")]
        place = _find(lines, old, at)
        lines[place : place + len(old)] = new
        at = place + len(new)
    return "\n".join(lines)


def _chunks(body: list[str]) -> Iterator[tuple[str, list[str]]]:
    anchor, chunk = "", list[str]()
    for line in body:
        if line.startswith("@@"):
            if chunk:
                yield anchor, chunk
            anchor, chunk = line[2:].strip(), []
        else:
            chunk.append(line or " ")
    if chunk:
        yield anchor, chunk


def _find(lines: list[str], old: list[str], at: int) -> int:
    if not old:  # nothing but new lines: they go to the end, before the last line's end
        return len(lines) - 1 if lines and not lines[-1] else len(lines)
    for start in itertools.chain(range(at, len(lines) - len(old) + 1), range(at)):
        if lines[start : start + len(old)] == old:
            return start
    raise ValueError("the lines are not there")
