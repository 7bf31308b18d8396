"""Sessions that people leave behind: what is new and at rest is imported, redacted, into the loop's own ledger."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from inloop.errors import DataError
from inloop.files import write_json
from inloop.recipe.loop_config import Watch
from inloop.trace.importing import import_traces
from inloop.trace.read.paths import Source, sources
from inloop.trace.redact.apply import Redactor
from inloop.trace.redact.find import load_salt
from inloop.trace.store import TrajectoryStore

SEEN = "watched.json"


def take_in(watch: Watch, root: Path) -> int:
    """Import what changed since the last look; returns how many trajectories came. Safe to repeat after a kill."""
    file = root / SEEN
    before: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    now = {str(s.path): _stamp(s) for s in _found(watch) if time.time() - _touched(s) >= watch.quiet_seconds}
    changed = [path for path, stamp in now.items() if before.get(path) != stamp]
    if not changed:
        return 0
    salt = Path(watch.salt) if watch.salt else None
    summary = import_traces(changed, root / "traces", redactor=Redactor(load_salt(salt)))
    write_json(file, before | now)
    return summary.trajectories


def _found(watch: Watch) -> list[Source]:
    """A path that names nothing yet is no mistake: sessions may come."""
    out: list[Source] = []
    for path in watch.paths:
        try:
            out += sources([str(Path(path).expanduser())], [])
        except DataError:
            continue
    return out


def _touched(source: Source) -> float:
    return max(p.stat().st_mtime for p in (source.path, *(c.path for c in source.companions)))


def _stamp(source: Source) -> list[float]:
    return [source.bytes, _touched(source)]


def waiting(root: Path, taken: set[str]) -> set[str]:
    """Ids of imported trajectories that no round has had; told from the ledger's index, which is quick."""
    return TrajectoryStore(root / "traces").ids() - taken if (root / "traces").is_dir() else set()


def in_order(root: Path, ids: set[str]) -> list[str]:
    """As they came in."""
    return [t.id for t in TrajectoryStore(root / "traces") if t.id in ids]
