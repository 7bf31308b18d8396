"""A training run is a folder: resolved config, events, metrics, checkpoints; one process writes it at a time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inloop import config
from inloop.errors import DataError
from inloop.files import append_json, locked, read_json_lines


@dataclass(frozen=True, slots=True)
class RunFolder:
    root: Path
    writes: bool = True
    """False in all but the first of several processes: one of them keeps the record."""

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def best(self) -> Path:
        return self.checkpoints / "best"

    @property
    def last(self) -> Path:
        return self.checkpoints / "last"

    @property
    def state(self) -> Path:
        """What a resume needs: optimiser, random state, position in the data."""
        return self.root / "state"

    def event(self, kind: str, **facts: Any) -> None:
        if self.writes:
            append_json(self.root / "events.jsonl", {"time": round(time.time(), 3), "event": kind, **facts})

    def metrics(self, step: int, **values: float) -> None:
        if self.writes:
            append_json(self.root / "metrics.jsonl", {"step": step, **values})

    def read_metrics(self) -> list[dict[str, Any]]:
        """One entry a step: where a resumed run repeats a step, the later entry counts."""
        file = self.root / "metrics.jsonl"
        rows: dict[tuple[int, frozenset[str]], dict[str, Any]] = {}
        for _, row in read_json_lines(file) if file.is_file() else ():
            rows[row["step"], frozenset(row)] = row
        return sorted(rows.values(), key=lambda r: int(r["step"]))


@contextlib.contextmanager
def open_run(root: Path, settings: Any, *, what: str, resume: bool) -> Iterator[RunFolder]:
    """Lock the folder and write the resolved config. Raises DataError for a folder that holds another run.

    Of several processes that train together the first one does this for all."""
    if not is_first_process():
        yield RunFolder(root, writes=False)
        return
    run = RunFolder(root)
    file = root / "config.toml"
    if file.is_file():
        if not resume:
            raise DataError(f"{root} already holds a run", fix="add --resume to go on with it, or choose another --out")
        if _lasting(config.load(type(settings), file)) != _lasting(settings):
            raise DataError(
                f"{file}: the run was started with another config", fix="resume with the same config, or a new --out"
            )
    with locked(root, what):
        config.save(settings, file)
        yield run


def _lasting(settings: Any) -> Any:
    """What a resumed run has to share with the first; how long this call may take is its own affair."""
    return replace(settings, wall_seconds=0.0) if hasattr(settings, "wall_seconds") else settings


def is_first_process() -> bool:
    """Of those that `accelerate launch` or `torchrun` started."""
    return int(os.environ.get("RANK", "0")) == 0
