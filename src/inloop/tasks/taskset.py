"""A taskset is a folder of task folders with an index, `tasks.jsonl`, that lists and filters without opening them."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from inloop.errors import TaskError
from inloop.files import BadLine, read_json_lines, write_atomic
from inloop.progress import bar
from inloop.tasks.folder import load_task, save_metadata
from inloop.tasks.task import Card, Task

INDEX = "tasks.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the index."""

    id: str
    path: str
    """Relative to the taskset."""
    split: str = ""
    kind: str = ""
    difficulty: float | None = None
    level: str = ""
    """What the builder expects: 'named' (the traceback says what to mend), 'pointed' (it says where), 'open'."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """Fields of `Provenance`."""
    card: dict[str, Any] | None = None
    """ok, reasons, content, seconds of the audit; None when there was none."""
    size: dict[str, int] = field(default_factory=dict)
    """words of the instruction, hidden tests, workspace files and bytes, lines that the solution changes."""
    mode: str = "forked"
    needs: str = ""
    """What this machine has to have, such as docker; empty runs everywhere."""

    @property
    def unit(self) -> str:
        """What splits go by: the source unit, or the task itself where nothing is known of its source."""
        return str(self.provenance.get("unit") or self.id)

    @property
    def repository(self) -> str:
        return str(self.provenance.get("repository") or "")

    @property
    def audited(self) -> bool:
        return bool(self.card and self.card.get("ok"))


def row_of(task: Task, root: Path) -> Row:
    """The index line of a loaded task."""
    return Row(
        id=task.id,
        path=task.root.resolve().relative_to(root.resolve()).as_posix(),
        split=task.split,
        kind=task.provenance.kind or task.provenance.builder,
        difficulty=task.difficulty,
        level=str(task.meta.get("difficulty", "")),
        provenance=asdict(task.provenance),
        card=_card(task.card) if task.card else None,
        size=measure(task),
        mode=task.verify.mode,
        needs=task.image,
    )


def _card(card: Card) -> dict[str, Any]:
    return {"ok": card.ok, "reasons": list(card.reasons), "content": card.content, "seconds": card.seconds}


def measure(task: Task) -> dict[str, int]:
    """Sizes that `stats` shows."""
    files = [p for p in task.workspace.rglob("*") if p.is_file()] if task.workspace.is_dir() else []
    patch = task.solution / "patch.diff"
    lines = patch.read_text("utf-8", "replace").splitlines() if patch.is_file() else []
    changed = [x for x in lines if x[:1] in "+-" and x[:3] not in ("+++", "---")]
    return {
        "words": len(task.instruction.split()),
        "tests": len(task.verify.expected),
        "files": len(files),
        "bytes": sum(p.stat().st_size for p in files),
        "patch_lines": len(changed),
    }


@dataclass
class Taskset:
    root: Path
    rows: list[Row]

    @classmethod
    def open(cls, root: Path | str) -> Taskset:
        """Read the index; a folder without one is indexed in memory; a task folder is a set of one.

        Raises TaskError with the line that can't be used."""
        root = Path(root)
        if (root / INDEX).is_file():
            return cls(root, _read_index(root / INDEX))
        if (root / "task.toml").is_file():
            return cls(root, [row_of(load_task(root), root)])
        found = cls.scan(root)
        if not found.rows:
            raise TaskError(f"{root}: neither {INDEX} nor task folders in it", fix="inloop tasks build ... --out DIR")
        return found

    @classmethod
    def scan(cls, root: Path | str) -> Taskset:
        """Index every task folder below `root`, whatever the old index said; nothing is written."""
        root = Path(root)
        if not root.is_dir():
            raise TaskError(f"{root}: no such folder", fix="give the folder of a taskset")
        paths = sorted(p.parent for p in root.rglob("task.toml") if not _inside_task(p.parent, root))
        rows = [row_of(load_task(p), root) for p in paths]
        _check_ids(rows, root)
        return cls(root, rows)

    def save(self) -> None:
        lines = [json.dumps(_row_dict(r), ensure_ascii=False, separators=(",", ":")) for r in self.rows]
        write_atomic(self.root / INDEX, "".join(f"{x}\n" for x in lines))

    def task(self, task_id: str) -> Task:
        """Load one task; its split and difficulty are the index's. Raises TaskError for an unknown id."""
        for row in self.rows:
            if row.id == task_id:
                return self.load(row)
        near = [r.id for r in self.rows if task_id in r.id][:3]
        raise TaskError(f"{self.root}: no task '{task_id}'", fix=f"did you mean {', '.join(near)}?" if near else None)

    def load(self, row: Row) -> Task:
        return replace(load_task(self.root / row.path), split=row.split, difficulty=row.difficulty)

    def tasks(self, rows: Iterable[Row] | None = None) -> Iterator[Task]:
        for row in self.rows if rows is None else rows:
            yield self.load(row)

    def refresh(self, tasks: Iterable[Task]) -> None:
        """Write tasks' metadata (card, split, difficulty) to their folders and the index."""
        new = {}
        for task in tasks:
            save_metadata(task)
            new[task.id] = row_of(task, self.root)
        self.rows = [new.get(r.id, r) for r in self.rows]
        self.save()

    def assign(self, split: dict[str, str]) -> None:
        """Set splits by task id, in the folders and in the index."""
        changed = [replace(r, split=split[r.id]) for r in self.rows if split.get(r.id, r.split) != r.split]
        with bar("split", len(changed)) as progress:
            for row in changed:
                save_metadata(self.load(row))
                progress.step()
        new = {r.id: r for r in changed}
        self.rows = [new.get(r.id, r) for r in self.rows]
        self.save()


def _inside_task(folder: Path, root: Path) -> bool:
    """A task.toml that lies inside another task (its workspace may hold one) or in a hidden folder is no task."""
    between = [p for p in folder.parents if p.is_relative_to(root)]
    hidden = any(part.startswith(".") for part in folder.relative_to(root).parts)
    return hidden or any((p / "task.toml").is_file() for p in between)


def _row_dict(row: Row) -> dict[str, Any]:
    return {k: v for k, v in asdict(row).items() if v not in (None, "", {})}


def _read_index(path: Path) -> list[Row]:
    bad: list[BadLine] = []
    rows = []
    for number, data in read_json_lines(path, bad):
        try:
            rows.append(Row(**data))
        except TypeError as error:
            raise TaskError(f"{path}:{number}: not a task row ({error})", fix=_REINDEX.format(path.parent)) from None
    if bad:
        raise TaskError(f"{path}:{bad[0].line}: {bad[0].reason}", fix=_REINDEX.format(path.parent))
    _check_ids(rows, path)
    return rows


_REINDEX = "inloop tasks index {} writes the index again from the folders"


def _check_ids(rows: list[Row], where: Path) -> None:
    seen: dict[str, Row] = {}
    for row in rows:
        if row.id in seen:
            raise TaskError(
                f"{where}: the id '{row.id}' is there twice ({seen[row.id].path}, {row.path})",
                fix="change `id` in one of the task.toml files",
            )
        seen[row.id] = row


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a list is narrowed by; an empty field lets all pass. Names are globs."""

    id: str = ""
    kind: str = ""
    split: str = ""
    builder: str = ""
    repository: str = ""
    unit: str = ""
    audited: bool | None = None
    min_difficulty: float | None = None
    """Tasks without a measured difficulty don't pass."""
    max_difficulty: float | None = None

    def __call__(self, row: Row) -> bool:
        names = (
            (self.id, row.id),
            (self.kind, row.kind),
            (self.split, row.split),
            (self.builder, row.provenance.get("builder", "")),
            (self.repository, row.repository),
            (self.unit, row.unit),
        )
        return (
            all(not glob or fnmatch.fnmatchcase(name, glob) for glob, name in names)
            and (self.audited is None or row.audited == self.audited)
            and self._difficulty(row.difficulty)
        )

    def _difficulty(self, value: float | None) -> bool:
        if self.min_difficulty is None and self.max_difficulty is None:
            return True
        if value is None:
            return False
        return (self.min_difficulty or 0.0) <= value <= (1.0 if self.max_difficulty is None else self.max_difficulty)
