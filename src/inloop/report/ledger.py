"""Thousands of rollouts by byte offset: a short row of each is kept, the rest stays on disk until it is looked at."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inloop.errors import DataError
from inloop.trace.jsonl import loads
from inloop.trace.trajectory import Trajectory

_NODES = b',"nodes":['


@dataclass(slots=True, kw_only=True)
class Entry:
    """What the list shows, and where the rest lies."""

    id: str
    start: int
    end: int
    task: str = ""
    group: str = ""
    kind: str = ""
    verdict: str = ""
    value: float | None = None
    fraction: float | None = None
    stop: str = ""
    turns: int = 0
    tokens: int = 0
    seconds: float = 0.0
    failing_tests: int = 0

    @property
    def passed(self) -> bool:
        return self.value is not None and self.value >= 1

    def row(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if k not in ("start", "end")}


class Ledger:
    """One `trajectories.jsonl`, read forward as it grows."""

    def __init__(self, path: Path, kinds: dict[str, str] | None = None) -> None:
        self.path, self.kinds = path, kinds or {}
        self._begin()

    def _begin(self) -> None:
        self.entries: list[Entry] = []
        self.by_id: dict[str, Entry] = {}
        self.read = 0
        self.skipped = 0
        """Lines that are no rollout, and repeated ids."""

    def refresh(self, seconds: float = 1e9) -> bool:
        """Read on for at most so long; True when the end was reached. A line still being written is left."""
        try:
            if self.path.stat().st_size < self.read:  # written anew
                self._begin()
            with self.path.open("rb") as file:
                return self._read_on(file, time.monotonic() + seconds)
        except FileNotFoundError:
            return True

    def _read_on(self, file: Any, until: float) -> bool:
        file.seek(self.read)
        for number, raw in enumerate(file):
            if not raw.endswith(b"\n"):
                return True
            start, self.read = self.read, self.read + len(raw)
            self._add(raw, start)
            if number % 64 == 0 and time.monotonic() > until:
                return False
        return True

    def _add(self, raw: bytes, start: int) -> None:
        try:
            entry = entry_of(head(raw), start, start + len(raw))
        except (ValueError, TypeError, AttributeError, KeyError):
            self.skipped += bool(raw.strip())
            return
        if entry.id in self.by_id:
            self.skipped += 1
            return
        entry.kind = self.kinds.get(entry.task, "")
        self.entries.append(entry)
        self.by_id[entry.id] = entry

    def raw(self, entry: Entry) -> bytes:
        with self.path.open("rb") as file:
            file.seek(entry.start)
            return file.read(entry.end - entry.start)

    def load(self, rollout_id: str) -> Trajectory:
        """Raises DataError for an id that is not there or a line that is no trajectory."""
        entry = self.by_id.get(rollout_id)
        if entry is None:
            raise DataError(f"{self.path}: no rollout {rollout_id!r}")
        try:
            return Trajectory.from_dict(loads(self.raw(entry)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{self.path}: {rollout_id}: not a trajectory ({error})") from None


def head(raw: bytes) -> dict[str, Any]:
    """All but the messages, which are nine tenths of a line and come last. Raises ValueError.

    The mark can't stand inside a string, where its quotes would be escaped; in a nested object the rest is no JSON."""
    cut = raw.find(_NODES)
    if cut > 0:
        try:
            return dict(loads(raw[:cut] + b"}"))
        except ValueError:
            pass
    return dict(loads(raw))


def entry_of(data: dict[str, Any], start: int, end: int) -> Entry:
    if not isinstance(data["id"], str):
        raise ValueError("no id")
    reward, counts = data.get("reward") or {}, data.get("counts") or {}
    return Entry(
        id=data["id"],
        start=start,
        end=end,
        task=str(data.get("task_id") or ""),
        group=str(data.get("group_id") or ""),
        verdict=str(reward.get("verdict") or ""),
        value=reward.get("value"),
        fraction=reward.get("fraction"),
        stop=str(data.get("stop") or ""),
        turns=int(counts.get("turns") or 0),
        tokens=int(counts.get("sampled_tokens") or 0),
        seconds=float((data.get("timings") or {}).get("total") or 0.0),
        failing_tests=int(counts.get("test_failures") or 0),
    )
