"""Keep what is evaluated out of what is trained: by task, by source unit, and by shared runs of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from inloop.data.duplicates import grams, said, words
from inloop.tasks.task import Task
from inloop.tasks.taskset import Taskset
from inloop.trace.trajectory import Trajectory

NGRAM = 13
SHARE = 0.3
"""Of an evaluation task's own runs of 13 words, how many a trajectory may not hold."""


class Decontaminate:
    """A screen against evaluation tasks.

    A trajectory is refused when it is of one of the tasks or of a task of the same source unit, or when it holds at
    least `share` of the 13-word runs of a task's solution, hidden tests and instruction. Runs that several evaluation
    tasks have in common are boilerplate and count for none of them."""

    def __init__(self, tasks: Iterable[Task], *, share: float = SHARE) -> None:
        self.share = share
        self.ids: set[str] = set()
        self.held_out_units: set[str] = set()
        owners: dict[int, str | None] = {}
        for task in tasks:
            self.ids.add(task.id)
            if task.provenance.unit:
                self.held_out_units.add(unit_of(task))
            for gram in grams(words(material(task)), NGRAM):
                owners[gram] = task.id if gram not in owners else None
        self._owner = {gram: owner for gram, owner in owners.items() if owner is not None}
        self._sizes: dict[str, int] = {}
        for owner in self._owner.values():
            self._sizes[owner] = self._sizes.get(owner, 0) + 1

    def __call__(self, trajectory: Trajectory) -> str:
        if trajectory.task_id in self.ids:
            return "of an evaluation task"
        if trajectory.meta.get("unit") in self.held_out_units:
            return "of the same source unit as an evaluation task"
        shared: dict[str, int] = {}
        for gram in grams(words(said(trajectory)), NGRAM):
            if owner := self._owner.get(gram):
                shared[owner] = shared.get(owner, 0) + 1
        if any(count >= self.share * self._sizes[owner] for owner, count in shared.items()):
            return "holds text of an evaluation task"
        return ""


def screen(evaluation: Sequence[Path]) -> Decontaminate:
    """Read tasksets; every task of them is kept out."""
    return Decontaminate(task for folder in evaluation for task in Taskset.open(folder).tasks())


def unit_of(task: Task) -> str:
    return f"{task.provenance.repository}@{task.provenance.unit}"


def material(task: Task) -> str:
    """What gives a task away: its solution's patch, its hidden tests, its instruction."""
    files = [p for folder in (task.solution, task.tests) if folder.is_dir() for p in sorted(folder.rglob("*"))]
    texts = [p.read_text(encoding="utf-8", errors="replace") for p in files if p.is_file()]
    return "\n".join([task.instruction, *texts])
