"""A path, a folder or a glob -> sources; sub-agent files go with their session."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inloop.errors import DataError
from inloop.trace.jsonl import loads
from inloop.trace.read.opencode import is_storage
from inloop.trace.read.openhands import is_conversation
from inloop.trace.read.place import Place
from inloop.trace.read.route import Companion, Tally, read_file, read_folder
from inloop.trace.skipped import Skipped
from inloop.trace.trajectory import Trajectory

IGNORED = {".git", "node_modules", "__pycache__", ".venv"}


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    name: str
    """As it is written in reports: relative to what the person named."""
    companions: list[Companion] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(p.stat().st_size for p in (self.path, *(c.path for c in self.companions)) if p.is_file())

    def read(self, skipped: list[Skipped], tally: Tally, images: Path | None = None) -> Iterator[Trajectory]:
        place = Place(self.name, 0, skipped, images)
        try:
            if self.path.is_dir():
                yield from read_folder(self.path, place, tally)
            else:
                yield from read_file(self.path, place, tally, self.companions)
        except OSError as error:
            place.skip(f"can't be read: {error.strerror or error}", kind="file")


def read(path: Path | str, images: Path | None = None) -> tuple[Iterator[Trajectory], list[Skipped]]:
    """(trajectories, what was skipped) of a file, a folder or a glob; the list fills while the iterator runs."""
    skipped: list[Skipped] = []

    def run() -> Iterator[Trajectory]:
        for source in sources([path], skipped):
            yield from source.read(skipped, Tally(), images)

    return run(), skipped


def sources(paths: list[Path | str], skipped: list[Skipped]) -> list[Source]:
    """What there is to read, sorted; each file once. Raises DataError when a path names nothing."""
    out: dict[Path, Source] = {}
    for given in paths:
        found = [Path(given)] if Path(given).exists() else _matches(str(given))
        if not found:
            raise DataError(f"{given} names no file", fix="give a file, a folder or a glob that matches something")
        for top in found:
            for source in _expand(top, skipped):
                out.setdefault(source.path.resolve(), source)
    return list(out.values())


def _matches(pattern: str) -> list[Path]:
    return sorted(Path(p) for p in glob.glob(pattern, recursive=True))  # noqa: PTH207  (absolute patterns as well)


def _expand(top: Path, skipped: list[Skipped]) -> Iterator[Source]:
    base = top.parent
    if top.is_file():
        yield Source(top, top.name, _companions(top, base))
        return
    taken: set[Path] = set()
    for folder, inner, files in os.walk(top):
        here = Path(folder)
        inner[:] = sorted(d for d in inner if d not in IGNORED)
        if is_conversation(here) or is_storage(here):
            inner.clear()
            yield Source(here, _name(here, base))
            continue
        paths = [here / f for f in sorted(files)]
        own = {p: _companions(p, base) for p in paths if p.suffix == ".jsonl" and not p.name.startswith("agent-")}
        taken |= {c.path for companions in own.values() for c in companions}
        for path in paths:
            if path in taken or path.name.endswith(".meta.json"):
                continue
            if not stat.S_ISREG(path.lstat().st_mode):
                skipped.append(Skipped(file=_name(path, base), line=0, reason="not a regular file", kind="file"))
                continue
            yield Source(path, _name(path, base), own.get(path, []))


def _name(path: Path, base: Path) -> str:
    return path.relative_to(base).as_posix()


def _companions(session: Path, base: Path) -> list[Companion]:
    """Claude Code keeps sub-agents in `<session>/subagents/`, older versions beside the session."""
    if session.suffix != ".jsonl":
        return []
    inside = sorted((session.with_suffix("") / "subagents").rglob("agent-*.jsonl"))
    beside = [p for p in sorted(session.parent.glob("agent-*.jsonl")) if p != session and _belongs(p, session.stem)]
    return [_companion(p, base) for p in (*inside, *beside)]


def _belongs(agent: Path, session_id: str) -> bool:
    with agent.open("rb") as file:
        return f'"{session_id}"'.encode() in file.read(4096)


def _companion(path: Path, base: Path) -> Companion:
    meta = path.with_name(f"{path.stem}.meta.json")
    call_id = None
    if meta.is_file():
        try:
            value = loads(meta.read_bytes())
            call_id = value.get("toolUseId") if isinstance(value, dict) else None
        except ValueError:
            call_id = None
    name = _name(path, base) if path.is_relative_to(base) else path.name
    return Companion(path, name, path.stem.removeprefix("agent-"), call_id if isinstance(call_id, str) else None)
