"""`results.json`: what was scored on what, and the figures; what `compare`, the report and exports read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from inloop.errors import DataError
from inloop.evaluate.score import TaskScore
from inloop.files import write_json

NAME = "results.json"
FORMAT = 1


@dataclass(slots=True, kw_only=True)
class Results:
    name: str
    """Of the checkpoint, for people."""
    checkpoint: dict[str, Any]
    """model, base, adapter, weights hash: what is known of it."""
    taskset: dict[str, Any]
    """path, split, and a hash over the ids and contents of its tasks."""
    harness: dict[str, Any]
    sampling: dict[str, Any]
    """k, temperature, seed."""
    summary: dict[str, Any]
    rows: list[TaskScore] = field(default_factory=list)

    @property
    def pass_at_1(self) -> float | None:
        mean: float | None = self.summary["pass@1"]["mean"]
        return mean

    def by_task(self) -> dict[str, TaskScore]:
        return {r.id: r for r in self.rows if r.scored}

    def write(self, folder: Path) -> Path:
        write_json(folder / NAME, {"format": FORMAT, **asdict(self)})
        return folder / NAME


def load_results(path: Path) -> Results:
    """From the file or the folder that holds it. Raises DataError."""
    file = path / NAME if path.is_dir() else path
    if not file.exists():
        raise DataError(f"{file}: no such file", fix="run `inloop eval` to the end, or give its --out folder")
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            raise ValueError("another format version")
        rows = [TaskScore(**row) for row in data.pop("rows")]
        return Results(**data, rows=rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file}: not a results file ({error})", fix="score again with `inloop eval`") from None


def same_ground(results: Sequence[Results]) -> None:
    """Raises DataError unless all were scored on the same tasks under the same harness limits of comparison."""
    first = results[0]
    for other in results[1:]:
        if other.taskset.get("hash") != first.taskset.get("hash"):
            raise DataError(
                f"{first.name} and {other.name} were scored on different tasks "
                f"({first.taskset.get('path')} and {other.taskset.get('path')})",
                fix="score both on the same taskset and split; a difference across tasks says nothing",
            )
