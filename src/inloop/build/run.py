"""What every builder shares: candidates in a fixed order, worked on in parallel, a ledger, counted drops."""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from inloop.build.draft import Drop
from inloop.errors import DataError, Fault
from inloop.files import append_json, locked, read_json_lines, write_json
from inloop.progress import Bar, bar
from inloop.tasks.task import Task
from inloop.tasks.taskset import INDEX, Row, Taskset, row_of

BATCH = 8
"""Candidates that share one sandbox start."""
FOLDER = ".build"


class Candidate(Protocol):
    @property
    def key(self) -> str: ...

    @property
    def unit(self) -> str: ...


C = TypeVar("C", bound=Candidate)
Attempt = Callable[[Sequence[C]], Iterator[tuple[C, "Task | Drop"]]]
"""Turns a batch into tasks or reasons, one after the other; runs in a worker thread."""


@dataclass(frozen=True, kw_only=True)
class Plan(Generic[C]):
    name: str
    """Of the ledger: builder and source."""
    config: dict[str, Any]
    """What decides the candidates; a ledger made by another one can't be gone on with."""
    candidates: Sequence[C]
    attempt: Attempt[C]
    dropped: Counter[str] = field(default_factory=Counter)
    """What did not become a candidate, and why."""
    per_unit: int = 4
    """Tasks of one source unit at most."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set when the build is left early; the attempt ends at its next step."""


@dataclass(kw_only=True)
class Report:
    """What a build did; also `drops.json`."""

    out: Path
    name: str
    kept: list[str]
    drops: Counter[str]
    skipped: Counter[str]
    """What did not become a candidate."""
    tried: int
    seconds: float
    """Of this run; what an earlier one did is not counted."""
    fresh: int
    """Tasks made by this run."""

    @property
    def audit_failures(self) -> int:
        return sum(n for why, n in self.drops.items() if why.startswith("audit: "))

    @property
    def rate(self) -> float:
        """Tasks a minute."""
        return 60 * self.fresh / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "name": self.name,
            "kept": len(self.kept),
            "tried": self.tried,
            "drops": dict(self.drops.most_common()),
            "not_candidates": dict(self.skipped.most_common()),
            "seconds": round(self.seconds, 1),
            "tasks_per_minute": round(self.rate, 1),
        }


def build(plan: Plan[C], out: Path, n: int, *, workers: int = 2) -> Report:
    """Make the first `n` tasks of the plan's order; goes on where an interrupted build of the same plan stopped.

    Raises DataError when `out` is in use, or holds the ledger of another configuration of the same name."""
    started = time.monotonic()
    with locked(out / FOLDER, f"build {plan.name}"):
        ledger = Ledger(out / FOLDER / f"{plan.name}.jsonl", plan.config)
        before = len(ledger.entries)
        rows = _select(plan, ledger, out, n, workers)
        report = _report(plan, ledger, rows, out, time.monotonic() - started, before)
        merge_index(out, list(rows.values()))
        write_json(out / FOLDER / f"{plan.name}.drops.json", report.as_json())
    return report


class Ledger:
    """One line a finished candidate, appended as it ends: a build killed at any moment goes on from here."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path, self.entries = path, dict[str, dict[str, Any]]()
        self.lock = threading.Lock()
        lines = [data for _, data in read_json_lines(path)] if path.is_file() else []
        if lines and lines[0].get("config") != config:
            changed = [k for k in config if lines[0].get("config", {}).get(k) != config[k]]
            raise DataError(
                f"{path} was begun with another {', '.join(changed) or 'configuration'}", fix="choose another --out"
            )
        if not lines:
            append_json(path, {"config": config})
        self.entries = {e["key"]: e for e in lines[1:] if "key" in e}

    def add(self, key: str, entry: dict[str, Any]) -> None:
        with self.lock:
            self.entries[key] = {"key": key, **entry}
            append_json(self.path, self.entries[key])


def _select(plan: Plan[C], ledger: Ledger, out: Path, n: int, workers: int) -> dict[str, Row]:
    """The first `n` candidates, in the plan's order, that became tasks; what was made beyond them is removed."""
    accepted: dict[str, Row] = {}
    units: Counter[str] = Counter()
    at = 0
    with bar(f"build {plan.name}", n) as progress, _Pool(workers, plan.stop) as pool:
        while at < len(plan.candidates) and len(accepted) < n:
            chunk = plan.candidates[at : at + _chunk(n - len(accepted), workers)]
            at += len(chunk)
            waiting = [c for c in chunk if not _known(c, ledger, out) and units[c.unit] < plan.per_unit]
            pool.run(plan, waiting, ledger, out, workers, progress)
            for candidate in chunk:
                entry = ledger.entries.get(candidate.key, {})
                if "row" not in entry:
                    continue
                if len(accepted) < n and units[candidate.unit] < plan.per_unit:
                    accepted[candidate.key] = Row(**entry["row"])
                    units[candidate.unit] += 1
                    progress.step(note=_note(ledger))
                else:
                    shutil.rmtree(out / entry["row"]["path"], ignore_errors=True)
    return accepted


def _chunk(wanted: int, workers: int) -> int:
    return workers * max(1, min(BATCH, math.ceil(wanted * 1.5 / workers)))


def _known(candidate: Candidate, ledger: Ledger, out: Path) -> bool:
    """Finished before: dropped, or made and still there."""
    entry = ledger.entries.get(candidate.key)
    return entry is not None and ("drop" in entry or (out / entry["row"]["path"] / "task.toml").is_file())


class _Pool:
    """Threads that each work on a batch; leaving it by an exception ends what has not begun."""

    def __init__(self, workers: int, stop: threading.Event) -> None:
        self.executor = ThreadPoolExecutor(workers, thread_name_prefix="build")
        self.stop = stop

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.stop.set()
        self.executor.shutdown(wait=True, cancel_futures=True)

    def run(self, plan: Plan[C], waiting: Sequence[C], ledger: Ledger, out: Path, workers: int, progress: Bar) -> None:
        def work(batch: Sequence[C]) -> None:
            for candidate, result in plan.attempt(batch):
                if isinstance(result, Drop):
                    ledger.add(candidate.key, {"drop": str(result), "unit": candidate.unit})
                else:
                    ledger.add(candidate.key, {"row": _as_dict(row_of(result, out))})
                progress.step(0, note=_note(ledger))
                if self.stop.is_set():
                    return

        batches = [b for b in (waiting[i::workers] for i in range(workers)) if b]
        for future in [self.executor.submit(work, batch) for batch in batches]:
            future.result()


def _as_dict(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Row.__dataclass_fields__}


def _note(ledger: Ledger) -> str:
    with ledger.lock:
        return f"{len(ledger.entries)} tried, {ledger_drops(ledger).total()} dropped"


def ledger_drops(ledger: Ledger) -> Counter[str]:
    return Counter(e["drop"] for e in ledger.entries.values() if "drop" in e)


def _report(plan: Plan[C], ledger: Ledger, rows: dict[str, Row], out: Path, seconds: float, before: int) -> Report:
    keys = list(ledger.entries)
    return Report(
        out=out,
        name=plan.name,
        kept=[r.id for r in rows.values()],
        drops=ledger_drops(ledger),
        skipped=plan.dropped,
        tried=len(keys),
        seconds=seconds,
        fresh=sum(1 for key in keys[before:] if key in rows),
    )


def merge_index(out: Path, rows: Sequence[Row]) -> None:
    """Merge the new rows into the taskset's index, which other builders may have written to."""
    known = Taskset.open(out).rows if (out / INDEX).is_file() else []
    new = {r.id: r for r in rows}
    split = {r.id: r.split for r in known}
    merged = [r for r in known if r.id not in new and (out / r.path / "task.toml").is_file()]
    merged += [Row(**(_as_dict(r) | {"split": split.get(r.id, r.split)})) for r in new.values()]
    Taskset(out, merged).save()


def guarded(candidates: Sequence[C], one: Callable[[C], Task]) -> Iterator[tuple[C, Task | Drop]]:
    """Each candidate made by `one`; a Drop or a fault of the machine becomes its reason."""
    for candidate in candidates:
        try:
            yield candidate, one(candidate)
        except Drop as drop:
            yield candidate, drop
        except Fault as fault:
            yield candidate, Drop(f"fault: {fault.message.splitlines()[0][:120]}")
