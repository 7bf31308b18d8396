"""A run that is looked at while it goes on: its ledgers by offset, filtered and searched without loading them."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inloop.config import load
from inloop.errors import DataError, InloopError
from inloop.report.ledger import Entry, Ledger, head
from inloop.report.scan import Run, scan
from inloop.trace.trajectory import Trajectory
from inloop.train.group_plan import NAME as GROUPS
from inloop.train.groups import Group, RewardConfig, advantages, score
from inloop.train.grpo_config import GrpoConfig

SCAN_EVERY = 2.0
"""Seconds between looks for new folders and figures."""
SLICE = 0.2
"""Seconds of reading before a request is answered with what is there."""
FAULTED = "faults"
"""Behind the folder's name: rollouts that met a fault lie in a ledger of their own."""
SORTS = ("turns", "tokens", "seconds", "value", "fraction")
WORD = re.compile(r'(?:\w+:)?"[^"]*"|\S+')
FIELDS = ("id", "task", "group", "kind", "verdict", "stop")


@dataclass(frozen=True, slots=True)
class Found:
    folder: str
    entry: Entry

    @property
    def key(self) -> str:
        return key_of(self.folder, self.entry.id)

    def row(self) -> dict[str, Any]:
        return {"key": self.key, "folder": self.folder, **self.entry.row()}


def key_of(folder: str, name: str) -> str:
    """What links carry: the same rollout id may stand in two ledgers."""
    return name if folder == "." else f"{folder}:{name}"


class Watched:
    """May be asked from several threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = threading.RLock()
        self.run: Run = scan(root, may_be_empty=True)
        self.ledgers: dict[str, Ledger] = {}
        self.complete = False
        self._scanned = 0.0
        self._rows: list[Found] = []
        self._taken: dict[str, int] = {}

    def look(self) -> Run:
        """Read on for a moment; what there is too much of comes with the next call."""
        with self.lock:
            if time.monotonic() - self._scanned > SCAN_EVERY:
                self.run = scan(self.root, may_be_empty=True)
                self._scanned = time.monotonic()
                kinds = self.run.kinds()
                faults = {f"{name} {FAULTED}": path for name, path in self.run.faults.items()}
                for name, path in (self.run.ledgers | faults).items():
                    self.ledgers.setdefault(name, Ledger(path)).kinds = kinds
            until = time.monotonic() + SLICE
            self.complete = all(x.refresh(max(0.0, until - time.monotonic())) for x in self.ledgers.values())
            self._take()
            return self.run

    def _take(self) -> None:
        """Append what is new, so that a list that is looked at does not jump."""
        for folder, ledger in self.ledgers.items():
            taken = self._taken.get(folder, 0)
            if len(ledger.entries) < taken:  # written anew
                self._rows = [r for r in self._rows if r.folder != folder]
                taken = 0
            self._rows += [Found(folder, e) for e in ledger.entries[taken:]]
            self._taken[folder] = len(ledger.entries)

    def find(self, query: str = "", sort: str = "", *, reverse: bool = False) -> list[Found]:
        """Rollouts that hold every word of `query`; `field:word` looks in one field, `text:"two words"` in all that
        was said and done."""
        with self.lock:
            rows: Iterable[Found] = self._rows
            for word in WORD.findall(query):
                rows = filter(self._matcher(word.replace('"', "")), rows)
            out = list(rows)
        if sort in SORTS:
            known = [r for r in out if getattr(r.entry, sort) is not None]
            unknown = [r for r in out if getattr(r.entry, sort) is None]
            out = sorted(known, key=lambda r: getattr(r.entry, sort), reverse=reverse) + unknown
        elif reverse:
            out.reverse()
        return out

    def _matcher(self, word: str) -> Callable[[Found], bool]:
        field, colon, value = word.partition(":")
        value = value.lower()
        if colon and field == "text":
            needle = json.dumps(word.partition(":")[2], ensure_ascii=False)[1:-1].encode()
            return lambda r: needle in self.ledgers[r.folder].raw(r.entry)
        if colon and field == "folder":
            return lambda r: value in r.folder.lower()
        if colon and field in FIELDS:
            return lambda r: value in getattr(r.entry, field).lower()
        plain = word.lower()
        return lambda r: any(plain in getattr(r.entry, f).lower() for f in FIELDS) or plain in r.folder.lower()

    def place(self, key: str) -> Found:
        """Raises DataError for a key that is not there."""
        with self.lock:
            for folder, ledger in self.ledgers.items():
                name = key if folder == "." else key.removeprefix(f"{folder}:") if key.startswith(f"{folder}:") else ""
                if name in ledger.by_id:
                    return Found(folder, ledger.by_id[name])
        raise DataError(f"{self.root}: no rollout {key!r}", fix="the folder may still be read; try again in a moment")

    def load(self, found: Found) -> Trajectory:
        return self.ledgers[found.folder].load(found.entry.id)

    def group(self, found: Found) -> list[Found]:
        """The rollouts of one group, itself among them."""
        with self.lock:
            entries = self.ledgers[found.folder].entries
            same = [e for e in entries if e.group == found.entry.group] if found.entry.group else [found.entry]
            return [Found(found.folder, e) for e in same]

    def scored(self, rows: Sequence[Found]) -> Group:
        """Rewards of one group, and where groups were trained on, advantages as the run's own settings have them."""
        config, scale = self._rewards(rows[0].folder)
        heads = [Trajectory.from_dict(head(self.ledgers[r.folder].raw(r.entry)) | {"nodes": []}) for r in rows]
        group = advantages([score(t, config, int(t.harness.get("max_turns") or 1)) for t in heads], scale)
        if (self.root / rows[0].folder / GROUPS).is_file():
            return group
        return replace(group, advantages=(None,) * len(heads), dropped="")

    def _rewards(self, folder: str) -> tuple[RewardConfig, Any]:
        file = self.root / folder / "config.toml"
        try:
            config = load(GrpoConfig, file)
        except (InloopError, OSError):
            return RewardConfig(), "std"
        return config.rewards, config.scale


def state(watched: Watched) -> dict[str, Any]:
    """What the page polls: counts, curves, scores."""
    run = watched.look()
    return {
        "name": run.name,
        "complete": watched.complete,
        "ledgers": [{"folder": f, "count": len(x.entries), "skipped": x.skipped} for f, x in watched.ledgers.items()],
        "problems": run.problems[:20],
        "trainings": [
            {
                "name": t.name,
                "kind": t.kind,
                "curves": dict(_curves(t.metrics)),
                "receipt": (t.receipt or {}).get("verdict"),
            }
            for t in run.trainings
        ],
        "evaluations": [
            {"folder": f, "name": r.name, "pass@1": r.summary.get("pass@1"), "faults": r.summary.get("faults")}
            for f, r in run.evaluations.items()
        ],
    }


def _curves(metrics: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    names = dict.fromkeys(k for row in metrics for k in row if k != "step")
    for name in names:
        yield name, [(row["step"], row[name]) for row in metrics if name in row]
