"""What a run folder holds, whichever stages it went through and however far it came."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop.data.drops import NAME as DROPS
from inloop.errors import DataError, InloopError
from inloop.evaluate.results import NAME as RESULTS
from inloop.evaluate.results import Results, load_results
from inloop.files import BadLine, read_json_lines
from inloop.rollout.collect import FAULTS
from inloop.tasks.taskset import INDEX, Taskset
from inloop.trace.store import NAME as LEDGER
from inloop.train.group_plan import NAME as GROUPS
from inloop.train.pilot import NAME as ADVICE
from inloop.train.receipt import NAME as RECEIPT

DEPTH = 4
INSIDE = ("checkpoints", "state", "environment", "node_modules", "__pycache__")
"""Folders in which no record of a run lies."""
STAGES = "stages.jsonl"
CONFIG = "config.toml"


@dataclass(slots=True, kw_only=True)
class Training:
    name: str
    """Its folder, relative to the run."""
    kind: str
    """'sft' or 'grpo'."""
    metrics: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    receipt: dict[str, Any] | None = None
    data: dict[str, Any] | None = None
    suspect: dict[str, Any] | None = None
    """Why its checkpoints are not to be trusted."""

    def last(self, kind: str) -> dict[str, Any]:
        return next((e for e in reversed(self.events) if e.get("event") == kind), {})


@dataclass(slots=True, kw_only=True)
class Run:
    root: Path
    evaluations: dict[str, Results] = field(default_factory=dict)
    """Folder -> results; base first, then by step."""
    trainings: list[Training] = field(default_factory=list)
    drops: dict[str, dict[str, Any]] = field(default_factory=dict)
    advice: dict[str, dict[str, Any]] = field(default_factory=dict)
    summaries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of collections."""
    ledgers: dict[str, Path] = field(default_factory=dict)
    faults: dict[str, Path] = field(default_factory=dict)
    tasks: dict[str, Taskset] = field(default_factory=dict)
    stages: list[dict[str, Any]] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """What could not be read, in words."""

    @property
    def name(self) -> str:
        return self.root.resolve().name

    @property
    def empty(self) -> bool:
        return not (self.evaluations or self.trainings or self.drops or self.ledgers or self.stages or self.advice)

    def kinds(self) -> dict[str, str]:
        """Task id -> kind."""
        told = {row.id: row.kind for taskset in self.tasks.values() for row in taskset.rows}
        return told | {row.id: row.kind for r in self.evaluations.values() for row in r.rows if row.kind}


def scan(root: Path, *, may_be_empty: bool = False) -> Run:
    """Read what is there; what can't be read becomes a problem, told and counted. Raises DataError for no run."""
    if not root.is_dir():
        raise DataError(f"{root}: no such folder", fix="give the --out folder of a run, an evaluation or a collection")
    run = Run(root=root)
    for folder in folders(root):
        _folder(run, folder)
    if run.empty and not run.problems and not may_be_empty:
        raise DataError(
            f"{root} holds nothing to report on: no results.json, metrics.jsonl, receipt.json or trajectories.jsonl",
            fix="give the --out folder of `inloop quickstart`, `train`, `sft`, `grpo`, `eval` or `collect`",
        )
    run.evaluations = dict(sorted(run.evaluations.items(), key=_order))
    run.trainings.sort(key=lambda t: t.kind != "sft")
    return run


def folders(root: Path) -> Iterator[Path]:
    """`root` and what may hold records below it; a taskset is not entered."""
    for at, names, files in os.walk(root):
        here = Path(at)
        deep = len(here.relative_to(root).parts) >= DEPTH
        stop = deep or (INDEX in files and here != root) or "task.toml" in files
        names[:] = [] if stop else sorted(n for n in names if not n.startswith(".") and n not in INSIDE)
        yield here


def _order(item: tuple[str, Results]) -> tuple[bool, int, str, int, str]:
    """Base, what was made first, the rest; by the file's own account where it says."""
    about, name = item[1].checkpoint, item[0]
    rank = {"base": 0, "sft": 1, "grpo": 2}.get(Path(name).name.removeprefix("eval-"), 3)
    return about.get("kind") != "base", rank, str(about.get("run") or ""), int(about.get("step") or 0), name


def _folder(run: Run, folder: Path) -> None:
    name = folder.relative_to(run.root).as_posix()
    has = {p.name for p in folder.iterdir() if p.is_file()}
    if RESULTS in has:
        _try(run, lambda: run.evaluations.update({name: load_results(folder)}))
    if {"metrics.jsonl", "events.jsonl", RECEIPT} & has:
        run.trainings.append(_training(run, folder, name, has))
    for file, table in ((DROPS, run.drops), (ADVICE, run.advice), ("summary.json", run.summaries)):
        if file in has and (value := _json(run, folder / file)) is not None:
            table[name] = value
    if LEDGER in has:
        run.ledgers[name] = folder / LEDGER
    if FAULTS in has:
        run.faults[name] = folder / FAULTS
    if INDEX in has:
        _try(run, lambda: run.tasks.update({name: Taskset.open(folder)}))
    if STAGES in has and name == ".":
        run.stages = [r for r in _rows(run, folder / STAGES) if isinstance(r.get("stage"), str)]
    if CONFIG in has:
        run.configs[f"{name}/{CONFIG}".removeprefix("./")] = (folder / CONFIG).read_text("utf-8", "replace")


def _training(run: Run, folder: Path, name: str, has: set[str]) -> Training:
    made = Training(name=name, kind="grpo" if {GROUPS, RECEIPT} & has else "sft")
    made.metrics = _metrics(_rows(run, folder / "metrics.jsonl")) if "metrics.jsonl" in has else []
    made.events = _rows(run, folder / "events.jsonl") if "events.jsonl" in has else []
    made.receipt = _json(run, folder / RECEIPT) if RECEIPT in has else None
    made.data = _json(run, folder / "data.json") if "data.json" in has else None
    made.suspect = _json(run, folder / "suspect.json") if "suspect.json" in has else None
    return made


def _metrics(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where a resumed run repeats a step, the later row counts; what is no number is left out."""
    kept: dict[tuple[int, frozenset[str]], dict[str, Any]] = {}
    for row in rows:
        if isinstance(row.get("step"), int):
            kept[row["step"], frozenset(row)] = {k: v for k, v in row.items() if isinstance(v, int | float)}
    return sorted(kept.values(), key=lambda r: int(r["step"]))


def _try(run: Run, read: Callable[[], Any]) -> None:
    try:
        read()
    except InloopError as error:
        run.problems.append(error.message)


def _json(run: Run, file: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return value
        raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        run.problems.append(f"{file}: {error}")
        return None


def _rows(run: Run, file: Path) -> list[dict[str, Any]]:
    bad: list[BadLine] = []
    rows = [row for _, row in read_json_lines(file, bad) if isinstance(row, dict)]
    run.problems += [f"{file}:{line.line}: {line.reason}" for line in bad[:3]]
    return rows
