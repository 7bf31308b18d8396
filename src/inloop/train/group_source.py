"""The trainer's side of the rollout process: rows in, weight versions and evaluations out."""

from __future__ import annotations

import multiprocessing as mp
import queue
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from inloop.errors import DataError, Fault
from inloop.train.group_worker import Control, GroupReport, WorkerSpec, run_worker
from inloop.train.receipt import Receipt
from inloop.train.trl_async import Row

STOP_SECONDS = 30.0
MANY_FLAT = 64
"""Groups in a row without a row to train on, after which a run has no signal."""


class GroupSource:
    """`RolloutSource` over a process that runs rollouts; fills the receipt as it hands rows out."""

    def __init__(
        self, spec: WorkerSpec, receipt: Receipt, *, max_staleness: int, on_group: Callable[[GroupReport], None]
    ) -> None:
        self.spec, self.receipt, self.max_staleness, self.on_group = spec, receipt, max_staleness, on_group
        self.settled = set(spec.settled)
        self.flat_in_row = 0
        self.version = 0
        context = mp.get_context("spawn")
        self.control = Control.make(context)
        self._messages: Any = context.Queue(maxsize=256)
        self._requests: Any = context.Queue()
        self._process = context.Process(
            target=run_worker, args=(spec, self.control, self._requests, self._messages), name="rollouts", daemon=False
        )
        self._rows: deque[tuple[Row, GroupReport]] = deque()
        self._answers: dict[int, Any] = {}
        self._asked = 0

    def start(self, weight_version: int) -> None:
        self.control.start_version.value = self.version = weight_version
        self.control.version.value = weight_version
        self._process.start()

    def new_weights(self, version: int) -> None:
        self.version = version
        self.control.version.value = version

    def take(self, timeout: float) -> Row | None:
        """The next row that is fresh enough; stale ones are counted and their place is given back."""
        deadline = time.monotonic() + timeout
        started = time.monotonic()
        try:
            while True:
                while self._rows:
                    row, report = self._rows.popleft()
                    if self._fresh(row):
                        return self._handed(row, report)
                if (left := deadline - time.monotonic()) <= 0:
                    return None
                self._receive(left)
        finally:
            self.receipt.took("waiting", time.monotonic() - started)

    def _fresh(self, row: Row) -> bool:
        age = self.version - (row.sample.weight_version or 0)
        if age <= self.max_staleness:
            return True
        self.receipt.drops["stale"] += 1
        with self.control.credit.get_lock():
            self.control.credit.value += 1
        return False

    def _handed(self, row: Row, report: GroupReport) -> Row:
        self.receipt.staleness[max(self.version - (row.sample.weight_version or 0), 0)] += 1
        seen = report.witnessed[row.sample.id]
        self.receipt.trained += seen.trained
        self.receipt.identical += seen.identical
        self.settled.add(row.group)
        return row

    def _receive(self, timeout: float) -> None:
        try:
            message = self._messages.get(timeout=min(timeout, 1.0))
        except queue.Empty:
            self.check(float("inf"))
            return
        if isinstance(message, GroupReport):
            self._group(message)
        elif message[0] == "evaluated":
            self._answers[message[1]] = message[2]
        elif message[0] == "error":
            raise DataError(f"the rollout process stopped: {message[1]}", fix=message[2] or None)

    def _group(self, report: GroupReport) -> None:
        count_group(self.receipt, report)
        if report.dropped or report.canary or not report.samples:
            self.settled.add(report.number)
        if not report.canary:
            self.flat_in_row = 0 if report.samples else self.flat_in_row + 1
        if self.flat_in_row >= MANY_FLAT:
            raise DataError(
                f"{self.flat_in_row} groups in a row gave nothing to learn from ({report.dropped or 'no rows'})",
                fix="`inloop advise` says what to do: SFT first, easier or harder tasks, larger groups",
            )
        metrics = report.metrics()
        for sample in report.samples:
            self._rows.append((Row(sample=sample, group=report.number, metrics=metrics[sample.trajectory]), report))
        self.on_group(report)

    def evaluate(self, step: int, timeout: float = 3600.0) -> Any:
        """Run the held-out tasks with the weights that are live now; blocks. Returns task -> list of rewards."""
        self._asked += 1
        self._requests.put((self._asked, step))
        deadline = time.monotonic() + timeout
        while self._asked not in self._answers:
            if time.monotonic() > deadline:
                raise Fault("the held-out evaluation did not end", fix="look at the rollouts in the run folder")
            self._receive(1.0)
        return self._answers.pop(self._asked)

    def check(self, stale_after: float) -> None:
        if self._process.exitcode not in (None, 0):
            raise Fault(
                f"the rollout process died (exit {self._process.exitcode})", fix="resume the run; memory may be short"
            )
        if time.time() - self.control.beat.value > stale_after:
            raise Fault(f"no rollout has moved for {stale_after:.0f} s", fix="look at the engine and the sandboxes")

    def stop(self) -> None:
        """Cancel what runs, into the sandboxes; end the process by force only when it does not go by itself."""
        self.control.stop.set()
        if self._process.pid is None:
            return
        deadline = time.monotonic() + STOP_SECONDS
        while self._process.is_alive() and time.monotonic() < deadline:
            try:  # a full queue would keep its feeder, and so the process, alive
                self._messages.get(timeout=0.1)
            except (queue.Empty, EOFError, OSError):
                self._process.join(0.05)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(5)


def count_group(receipt: Receipt, report: GroupReport) -> None:
    """What one finished group adds to the receipt."""
    receipt.rollouts += report.rollouts
    receipt.faults.update(report.faults)
    receipt.stops.update(report.stops)
    for what, seconds in report.seconds.items():
        receipt.took(what, seconds)
    if report.canary:
        return
    receipt.groups += 1
    if report.dropped:
        receipt.drops[report.dropped] += 1
    receipt.drops.update(report.drops)
    receipt.forks += max(0, len(report.samples) - len({s.trajectory for s in report.samples}))
