"""The taskset as OpenEnv's Task API sees it: splits, tasks by split and index, and the choice that a reset names."""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from inloop.errors import TaskError
from inloop.tasks.task import Task
from inloop.tasks.taskset import Row, Taskset

UNSPLIT = "default"
"""The split of tasks that have none."""
KEPT = 512
"""Loaded tasks that are kept: the verifier remembers a task by the object."""
TYPES = {"train": "train", "validation": "validation", "valid": "validation", "dev": "validation", "test": "test"}


class Catalog:
    """Thread safe."""

    def __init__(self, root: Path) -> None:
        """Raises TaskError when `root` is no taskset."""
        self._set = Taskset.open(root)
        self.root = root
        self.splits: dict[str, list[Row]] = {}
        for row in self._set.rows:
            self.splits.setdefault(row.split or UNSPLIT, []).append(row)
        self._lock = threading.Lock()
        self._loaded: OrderedDict[str, Task] = OrderedDict()

    def rows(self, split: str) -> list[Row]:
        """Raises TaskError for an unknown split."""
        if split not in self.splits:
            raise TaskError(f"there is no split {split!r}", fix=f"there are: {', '.join(self.splits)}")
        return self.splits[split]

    def describe(self, split: str, index: int) -> dict[str, Any]:
        """One entry of the Task API. Raises IndexError."""
        rows = self.rows(split)
        if not 0 <= index < len(rows):
            raise IndexError(index)
        row = rows[index]
        return {"id": row.id, "index": index, "split": split, "kind": row.kind, "difficulty": row.difficulty}

    def choose(
        self, *, task_id: str | None = None, split: str | None = None, index: int | None = None, seed: int | None = None
    ) -> Task:
        """By id; by split and index; else the seed draws one, of a split or of all. Raises TaskError."""
        if task_id is not None:
            return self.load(task_id)
        rows = self._set.rows if split is None else self.rows(split)
        if index is None:
            index = random.Random(seed).randrange(len(rows))
        elif split is None:
            raise TaskError("reset: an index without a split", fix="give both, or a task_id")
        if not 0 <= index < len(rows):
            raise TaskError(f"reset: split {split!r} has {len(rows)} tasks, no index {index}", fix="count from 0")
        return self.load(rows[index].id)

    def load(self, task_id: str) -> Task:
        with self._lock:
            known = self._loaded.get(task_id)
            if known is None:
                known = self._set.task(task_id)
                self._loaded[task_id] = known
                while len(self._loaded) > KEPT:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(task_id)
            return known
