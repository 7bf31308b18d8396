"""Progress for people: a bar on a terminal, a line now and then in a log, nothing with `--json`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

LOG_EVERY = 20.0

console = Console(stderr=True)
quiet = False
"""Set by `--json` and `--quiet`."""


class Bar:
    """What a stage reports to: `bar.step(note='pass 12/30')`."""

    def __init__(self, label: str, total: int | None, progress: Progress | None) -> None:
        self.label, self.total, self.done, self.note = label, total, 0, ""
        self._progress, self._last = progress, time.monotonic()
        self._task = progress.add_task(label, total=total, note="") if progress else None

    def step(self, n: int = 1, *, note: str | None = None) -> None:
        self.done += n
        self.note = self.note if note is None else note
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self.done, note=self.note)
        elif not quiet and time.monotonic() - self._last >= LOG_EVERY:
            self._last = time.monotonic()
            print(f"{self.label}: {self.done}/{self.total or '?'} {self.note}", file=sys.stderr, flush=True)

    def set_total(self, total: int) -> None:
        self.total = total
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=total)


@contextmanager
def bar(label: str, total: int | None = None) -> Iterator[Bar]:
    """`with bar('verify', 40) as b: ...; b.step()`."""
    if quiet or not console.is_terminal:
        yield Bar(label, total, None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as progress:
        yield Bar(label, total, progress)
