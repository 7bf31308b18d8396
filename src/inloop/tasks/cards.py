"""Only audited tasks are trained on, unless a person overrides it by the full name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from inloop.errors import TaskError
from inloop.tasks.task import Task

OVERRIDE = "--allow-unaudited-tasks"


def why_unaudited(task: Task) -> str:
    """'' for a task whose card is valid for its content; else what is wrong with the card."""
    if task.card is None:
        return "no card"
    if not task.card.ok:
        return "failed its audit: " + (", ".join(task.card.reasons) or "no reason given")
    if task.card.content != task.content_hash():
        return "changed since its audit"
    return ""


def require_cards(tasks: Iterable[Task], *, allow_unaudited: bool = False) -> list[Task]:
    """The tasks, if every one has a valid card or the override was given. Raises TaskError that counts the rest."""
    kept = list(tasks)
    if allow_unaudited:
        return kept
    bad = {t.id: why for t in kept if (why := why_unaudited(t))}
    if bad:
        counts = "; ".join(f"{n} {why}" for why, n in Counter(bad.values()).most_common(5))
        first = ", ".join(list(bad)[:3])
        raise TaskError(
            f"{len(bad)} of {len(kept)} tasks have no valid audit card ({counts}), such as {first}",
            fix=f"inloop tasks check DIR, or {OVERRIDE} to train on them all the same",
        )
    return kept
