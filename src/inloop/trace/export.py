"""A ledger -> ATIF, chat messages or Hugging Face session traces; says what was lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop import progress
from inloop.errors import DataError
from inloop.files import write_atomic
from inloop.trace.jsonl import dump
from inloop.trace.trajectory import Trajectory
from inloop.trace.write import atif, chat, sts

Writer = Callable[[Trajectory, "Counter[str]"], list[dict[str, Any]]]
FORMATS: dict[str, Writer] = {"atif": atif.write, "chat": chat.write, "sts": sts.write}


@dataclass(slots=True, kw_only=True)
class Exported:
    trajectories: int = 0
    documents: int = 0
    files: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    """What the format can't hold -> in how many places it was lost."""


def export(trajectories: Iterable[Trajectory], target: str, out: Path) -> Exported:
    """chat: one JSONL file `out`. atif, sts: one file a document in the folder `out`. Raises DataError."""
    if target not in FORMATS:
        raise DataError(f"unknown format {target!r}", fix=f"one of {', '.join(FORMATS)}")
    if target != "chat" and out.is_file():
        raise DataError(f"{out} is a file, {target} needs a folder", fix="name a folder with --out")
    if target == "chat" and out.is_dir():
        raise DataError(f"{out} is a folder, chat needs a file", fix="name a file with --out")
    done, losses = Exported(), Counter[str]()
    with progress.bar("export") as bar:
        if target == "chat":
            _one_file(trajectories, out, done, losses, bar)
        else:
            _folder(trajectories, target, out, done, losses, bar)
    done.lost = dict(losses.most_common())
    return done


def _one_file(
    trajectories: Iterable[Trajectory], out: Path, done: Exported, losses: Counter[str], bar: progress.Bar
) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.part")
    try:
        with part.open("wb") as file:
            for trajectory in trajectories:
                rows = chat.write(trajectory, losses)
                file.writelines(dump(row) + b"\n" for row in rows)
                done.trajectories, done.documents = done.trajectories + 1, done.documents + len(rows)
                bar.step()
        part.replace(out)
        done.files = 1
    finally:
        part.unlink(missing_ok=True)


def _folder(
    trajectories: Iterable[Trajectory], target: str, out: Path, done: Exported, losses: Counter[str], bar: progress.Bar
) -> None:
    for trajectory in trajectories:
        documents = FORMATS[target](trajectory, losses)
        files = _sessions(documents) if target == "sts" else {str(d["trajectory_id"]): dump(d) for d in documents}
        for name, raw in files.items():
            write_atomic(out / f"{_safe(name)}.{'jsonl' if target == 'sts' else 'json'}", raw + b"\n")
        done.trajectories, done.documents = done.trajectories + 1, done.documents + len(files)
        done.files += len(files)
        bar.step()


def _sessions(records: list[dict[str, Any]]) -> dict[str, bytes]:
    out: dict[str, list[bytes]] = {}
    for record in records:
        if record["type"] == "session":
            current = out.setdefault(str(record["id"]), [])
        current.append(dump(record))
    return {name: b"\n".join(rows) for name, rows in out.items()}


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._#~-]", "_", name)[:150].lstrip(".") or "trajectory"
