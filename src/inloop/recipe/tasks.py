"""The stage that makes the tasks of a recipe: the starter set, or the user's own repository."""

from __future__ import annotations

from pathlib import Path

from inloop.build.builders import build_functions
from inloop.build.commits import build_commits
from inloop.build.starter.builder import build_starter
from inloop.build.starter.library import entries
from inloop.build.starter.plan import MIX
from inloop.recipe.config import RL_SPLIT, TasksPart
from inloop.tasks.splits import By, assign
from inloop.tasks.taskset import Taskset

EASY = "misspelling"


def make_tasks(part: TasksPart, out: Path, seed: int) -> Taskset:
    """Build, audit and split; an interrupted build goes on in `out`. A taskset that is given is opened as it is."""
    if part.path is not None:
        return Taskset.open(part.path)
    taskset = _build(part, out, seed)
    if part.rl_share:
        train = [row for row in taskset.rows if row.split == "train"]
        taskset.assign(assign(train, {"train": 1 - part.rl_share, RL_SPLIT: part.rl_share}, seed=seed, reset=True))
    return taskset


def _build(part: TasksPart, out: Path, seed: int) -> Taskset:
    if part.builder == "starter":
        library = [e for e in entries() if len(e.source) <= (part.longest or len(e.source))]
        build_starter(out, part.n, seed, mix=_mix(part.misspellings), test_share=part.test_share, library=library)
        Taskset.scan(out).save()
        return Taskset.open(out)
    if part.builder == "commits":
        build_commits(part.source, out, part.n, seed=seed)
    else:
        build_functions(part.builder, part.source, out, part.n, seed=seed)
    taskset = Taskset.open(out)
    shares = {"train": 1 - part.test_share, "test": part.test_share}
    by: By = "commit" if part.builder == "commits" else "function"
    taskset.assign(assign(taskset.rows, shares, by=by, seed=seed, reset=True))
    return taskset


def _mix(misspellings: float) -> dict[str, float]:
    """Shares of the kinds of bugs, with that of the misspellings set."""
    rest = (1 - misspellings) / (1 - MIX[EASY])
    return {kind: misspellings if kind == EASY else share * rest for kind, share in MIX.items()}
