"""Edits as an agent makes them: the next one towards the solution, and plausible ones that miss it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from inloop.build.mutations import candidates, mutate
from inloop.build.pysource import Module
from inloop.types import Call

PLAUSIBLE = ("operator", "comparison", "boundary", "constant", "condition", "arguments")
"""Kinds of change that somebody who looks for a bug would try."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Replace `old`, which stands once in the file, by `new`."""

    path: str
    old: str
    new: str

    def call(self) -> Call:
        return Call(id="", name="edit", arguments={"path": self.path, "old": self.old, "new": self.new}, raw="")

    def back(self) -> Repair:
        return Repair(self.path, self.new, self.old)


@dataclass(frozen=True, slots=True)
class Wrong:
    edit: Repair
    same_line: bool
    """It changes the line that is to be mended, but not into what it should be."""


def first_edit(path: str, now: str, goal: str) -> Repair | None:
    """The first place at which `now` differs from `goal`, as whole lines; None if no such edit can be written.

    Lines around it are taken in until the old text stands once in the file, both ways."""
    old, new = now.split("\n"), goal.split("\n")
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    change = next((c for c in matcher.get_opcodes() if c[0] != "equal"), None)
    if change is None:
        return None
    _, i1, i2, j1, j2 = change
    before = after = 0
    while before + after <= len(old):
        top, bottom = max(i1 - before, 0), min(i2 + after, len(old))
        text = "\n".join(old[top:bottom])
        filled = "\n".join([*old[top:i1], *new[j1:j2], *old[i2:bottom]])
        if text.strip() and filled.strip() and now.count(text) == 1:
            return Repair(path, text, filled)
        if top and before <= after:
            before += 1
        else:
            after += 1
            before += top > 0 and bottom == len(old)
    return None


def wrong_edits(path: str, now: str, goal: str) -> list[Wrong]:
    """Plausible edits of one line that do not give `goal`; nothing for files that are not Python."""
    try:
        module = Module(path, now.encode())
    except SyntaxError:
        return []
    lines = now.split("\n")
    right = _changed_line(now, goal)
    out: dict[Repair, Wrong] = {}
    for function in module.functions():
        if not function.first_line - 1 <= right <= function.last_line:
            continue
        for mutation in candidates(module, function):
            changed = mutate(module, mutation).decode().split("\n")
            at = [i for i, (a, b) in enumerate(zip(lines, changed, strict=False)) if a != b]
            if mutation.kind not in PLAUSIBLE or len(changed) != len(lines) or len(at) != 1:
                continue
            edit = Repair(path, lines[at[0]], changed[at[0]])
            unique = now.count(edit.old) == 1 and "\n".join(changed).count(edit.new) == 1
            if unique and "\n".join(changed) != goal and "not (not" not in edit.new:
                out[edit] = Wrong(edit, at[0] == right)
    return list(out.values())


def _changed_line(now: str, goal: str) -> int:
    """0-based first line of `now` that differs."""
    pairs = zip(now.split("\n"), goal.split("\n"), strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), 0)
