"""Foreign sessions -> a ledger: read, redact, mark copies, append; what is left out is written with its reason."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from inloop import progress
from inloop.errors import DataError
from inloop.files import locked, write_json
from inloop.trace.copies import Copies
from inloop.trace.jsonl import dump
from inloop.trace.read.paths import Source, sources
from inloop.trace.read.route import Tally
from inloop.trace.redact.apply import Receipt, Redactor
from inloop.trace.skipped import Skipped
from inloop.trace.store import NAME, TrajectoryStore, content_hash
from inloop.trace.trajectory import Trajectory

BATCH_NODES = 4000
"""Messages that are held before they are written."""


@dataclass(slots=True, kw_only=True)
class Summary:
    """What an import did; every record is in one of records_used, metadata and skipped."""

    sources: int = 0
    bytes: int = 0
    records: int = 0
    records_used: int = 0
    metadata: dict[str, int] = field(default_factory=dict)
    trajectories: int = 0
    """Written."""
    turns: int = 0
    """Sampled turns of what was written."""
    copied_turns: int = 0
    duplicates: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Reason -> how many, duplicates included."""
    formats: dict[str, int] = field(default_factory=dict)
    redacted: bool = True
    cuts: dict[str, int] = field(default_factory=dict)
    """Kind of secret -> how many cuts."""
    nodes_without_ids: int = 0
    """Nodes whose captured token ids were dropped because they held a secret and no tokenizer was given."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class _SkipLog(list[Skipped]):
    """Written at once, redacted, and only counted in memory."""

    def __init__(self, out: IO[bytes], redactor: Redactor | None) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self._out, self._redactor = out, redactor

    def __len__(self) -> int:
        return self.counts.total()

    def append(self, item: Skipped) -> None:
        entry = item.to_dict()
        if self._redactor:
            entry |= {k: self._redactor.text(entry[k]) for k in ("file", "reason")}
        self.counts[entry["reason"]] += 1
        self._out.write(dump(entry) + b"\n")


def import_traces(
    paths: Iterable[Path | str], out: Path, *, redactor: Redactor | None, images: bool = False
) -> Summary:
    """Append what `paths` hold to the ledger in `out`; safe to repeat: what is there is not written again."""
    if out.suffix:
        raise DataError(f"{out} looks like a file", fix="--out names a folder")
    early: list[Skipped] = []
    found = sources(list(paths), early)  # a mistake in the paths leaves no folder behind
    with locked(out, "traces import"):
        with (out / "skipped.jsonl").open("ab") as skips, (out / "redactions.jsonl").open("ab") as cuts:
            log = _SkipLog(skips, redactor)
            work = _Import(out, redactor, log, cuts, out / "images" if images else None)
            for item in early:
                log.append(item)
            work.run(found)
        summary = work.summary
        summary.skipped = dict(log.counts.most_common())
        write_json(out / "import.json", summary.to_dict())
    return summary


class _Import:
    def __init__(
        self, out: Path, redactor: Redactor | None, log: _SkipLog, cuts: IO[bytes], images: Path | None
    ) -> None:
        self.redactor, self.log, self.cuts, self.images = redactor, log, cuts, images
        self.store = TrajectoryStore(out / NAME, dedupe=True)
        self.copies = Copies()
        self.copies.learn(self.store)
        self.summary = Summary(redacted=redactor is not None)
        self.batch: list[Trajectory] = []
        self.held = 0
        self.waiting: dict[str, str] = {}
        """Rollout id -> content, of what is in the batch."""
        self.metadata: Counter[str] = Counter()
        self.formats: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    def run(self, found: list[Source]) -> None:
        with progress.bar("import", len(found)) as bar:
            for source in found:
                tally = Tally()
                for trajectory in source.read(self.log, tally, self.images):
                    self._take(trajectory)
                    bar.step(0, note=f"{self.summary.trajectories + len(self.batch)} trajectories")
                self._count(source, tally)
                bar.step()
            self._write()
        self.summary.metadata = dict(self.metadata.most_common())
        self.summary.formats = dict(self.formats.most_common())
        self.summary.cuts = dict(sorted(self.kinds.items()))

    def _count(self, source: Source, tally: Tally) -> None:
        self.summary.sources += 1
        self.summary.bytes += source.bytes
        self.summary.records += tally.records
        self.summary.records_used += tally.used
        self.metadata.update(tally.metadata)

    def _take(self, trajectory: Trajectory) -> None:
        receipt = self.redactor.trajectory(trajectory) if self.redactor else Receipt()
        had = sum(n.sampled for n in trajectory.nodes)
        copied, left = self.copies.mark(trajectory)
        self.summary.copied_turns += copied
        if had and not left:
            self._duplicate(trajectory, "a copy: every turn of it was read before")
            return
        trajectory.id = self._id(trajectory)
        self._note(trajectory, receipt)
        self.batch.append(trajectory)
        self.held += len(trajectory.nodes)
        if self.held >= BATCH_NODES:
            self._write()

    def _note(self, trajectory: Trajectory, receipt: Receipt) -> None:
        """What was cut, on disk before the trajectory is."""
        self.summary.nodes_without_ids += receipt.dropped_ids
        for cut in receipt.cuts:
            self.kinds[cut["kind"]] += 1
            self.cuts.write(dump({**cut, "trajectory": trajectory.id}) + b"\n")

    def _id(self, trajectory: Trajectory) -> str:
        """Of the content, so that a second import finds it; a ledger's own rollout ids stay while they are free."""
        content = content_hash(trajectory)
        said = hashlib.sha256(f"{trajectory.meta.get('session', '')}{content}".encode()).hexdigest()
        if not trajectory.id:
            return f"{trajectory.meta.get('format', 'trace')}-{said[:20]}"
        waiting = self.waiting.setdefault(trajectory.id, content)
        taken = waiting != content or (trajectory.id in self.store and self.store.duplicate_of(trajectory) is None)
        return f"{trajectory.id}~{said[:8]}" if taken else trajectory.id

    def _write(self) -> None:
        for trajectory, is_new in zip(self.batch, self.store.extend(self.batch), strict=True):
            if is_new:
                self.summary.trajectories += 1
                self.summary.turns += sum(n.sampled for n in trajectory.nodes)
                self.formats[str(trajectory.meta.get("format", "inloop"))] += 1
            else:
                self._duplicate(trajectory, "the same content is already in the ledger")
        self.batch, self.held, self.waiting = [], 0, {}

    def _duplicate(self, trajectory: Trajectory, reason: str) -> None:
        self.summary.duplicates += 1
        source = trajectory.nodes[0].source or (str(trajectory.meta.get("file", "")), 0)
        self.log.append(Skipped(file=source[0], line=source[1], reason=reason, kind="duplicate"))
