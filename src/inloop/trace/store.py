"""The ledger: `trajectories.jsonl`, append-only, each rollout id once, safe for several processes."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from inloop.trace.jsonl import dump, lines, loads
from inloop.trace.skipped import Skipped
from inloop.trace.trajectory import Trajectory, message_to_dict

NAME = "trajectories.jsonl"
_ENTRY = re.compile(rb'(\d+)\t(\d+)\t("[^\n]*")\t([0-9a-f]{64})\n')


def ledger(path: Path) -> Path:
    """`path` itself, or the ledger in the run folder `path`."""
    return path / NAME if path.is_dir() or not path.suffix else path


def content_hash(trajectory: Trajectory) -> str:
    """What was said and in what order, whoever recorded it: ids, times, tokens and sources don't count."""
    place = {n.id: i for i, n in enumerate(trajectory.nodes)}
    said = [(place.get(n.parent or "", -1), message_to_dict(n.message)) for n in trajectory.nodes]
    return hashlib.sha256(dump([trajectory.task_id, said])).hexdigest()


class TrajectoryStore:
    """Append trajectories to one ledger. With `dedupe`, the same content under another id is refused as well.

    Beside the ledger lies `.<name>.index` (one line an entry: start, end, id, content hash), so that a resume needs
    not read the trajectories. It is a cache: when it is missing, torn or wrong it is made again from the ledger.
    Its lock makes 'look, then append' one step for all processes."""

    def __init__(self, path: Path | str, *, dedupe: bool = False) -> None:
        self.path = ledger(Path(path))
        self.dedupe = dedupe
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._index_path = self.path.with_name(f".{self.path.name}.index")
        self._ids: dict[str, str] = {}
        self._contents: dict[str, str] = {}
        self._seen = 0
        self._read = 0
        self._last: tuple[int, bytes] | None = None
        with self._locked() as index:
            self._catch_up(index)

    def __contains__(self, rollout_id: str) -> bool:
        return rollout_id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self) -> set[str]:
        """As of the last append of this process."""
        return set(self._ids)

    def append(self, trajectory: Trajectory) -> bool:
        """Write it durably; False, and nothing is written, when its id is already there."""
        return self.extend([trajectory])[0]

    def extend(self, trajectories: Iterable[Trajectory]) -> list[bool]:
        """Append a batch under one lock and one sync; says of each whether it was new."""
        batch = [(t.id, content_hash(t), dump(t.to_dict())) for t in trajectories]
        with self._locked() as index:
            self._catch_up(index)
            admitted = [self._admit(rollout_id, content) for rollout_id, content, _ in batch]
            if new := [entry for entry, is_new in zip(batch, admitted, strict=True) if is_new]:
                self._write(index, new)
        return admitted

    def duplicate_of(self, trajectory: Trajectory) -> str | None:
        """The id under which the same content is already in the ledger."""
        return self._contents.get(content_hash(trajectory))

    def __iter__(self) -> Iterator[Trajectory]:
        return read_trajectories(self.path)[0]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        with self._index_path.open("ab+") as index:
            fcntl.flock(index, fcntl.LOCK_EX)
            yield index

    def _admit(self, rollout_id: str, content: str) -> bool:
        if rollout_id in self._ids or (self.dedupe and content in self._contents):
            return False
        self._remember(rollout_id, content)
        return True

    def _remember(self, rollout_id: str, content: str) -> None:
        self._ids[rollout_id] = content
        self._contents.setdefault(content, rollout_id)

    def _write(self, index: IO[bytes], new: list[tuple[str, str, bytes]]) -> None:
        with self.path.open("ab+") as out:
            end = out.seek(0, os.SEEK_END)
            torn = b"\n" if _torn(out, end) else b""
            entries = []
            end += len(torn)
            for rollout_id, content, line in new:
                entries.append(_entry(end, end + len(line) + 1, rollout_id, content))
                end += len(line) + 1
            out.write(torn + b"".join(line + b"\n" for _, _, line in new))
            out.flush()
            os.fsync(out.fileno())
        index.write(b"".join(entries))
        index.flush()
        self._seen, self._read = end, index.seek(0, os.SEEK_END)

    def _catch_up(self, index: IO[bytes]) -> None:
        """Learn what other processes appended since the last look; mend the index where it falls short."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if size == self._seen and size:
            return
        if not self._read_index(index, size):
            index.truncate(0)
            self._ids, self._contents, self._seen, self._read, self._last = {}, {}, 0, 0, None
        if self._seen < size:
            self._scan(index)

    def _read_index(self, index: IO[bytes], size: int) -> bool:
        """False when the index does not describe this ledger."""
        index.seek(self._read)
        for raw in index:
            if not (match := _ENTRY.fullmatch(raw)):
                index.truncate(self._read)
                break
            start, self._seen = int(match[1]), int(match[2])
            self._read += len(raw)
            self._remember(loads(match[3]), match[4].decode())
            self._last = (start, match[3])
        return self._seen <= size and self._last_is_there()

    def _last_is_there(self) -> bool:
        """A ledger that somebody rewrote does not hold the newest entry where the index says it is."""
        if not self._seen or not self._last:
            return True
        start, rollout_id = self._last
        with self.path.open("rb") as file:
            file.seek(start)
            if not file.read(len(rollout_id) + 6).endswith(rollout_id):
                return False
            file.seek(self._seen - 1)
            return file.read(1) == b"\n"

    def _scan(self, index: IO[bytes]) -> None:
        with self.path.open("rb") as file:
            file.seek(self._seen)
            entries = []
            for raw in file:
                if not raw.endswith(b"\n"):
                    break
                start, self._seen = self._seen, self._seen + len(raw)
                if found := _identify(raw):
                    self._remember(*found)
                    entries.append(_entry(start, self._seen, *found))
        index.write(b"".join(entries))
        index.flush()
        self._read = index.seek(0, os.SEEK_END)


def _entry(start: int, end: int, rollout_id: str, content: str) -> bytes:
    return b"%d\t%d\t%s\t%s\n" % (start, end, dump(rollout_id), content.encode())


def _identify(raw: bytes) -> tuple[str, str] | None:
    try:
        trajectory = _parse(loads(raw))
    except ValueError:
        return None
    return trajectory.id, content_hash(trajectory)


def _parse(value: Any) -> Trajectory:
    """Raises ValueError with what is wrong."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        raise ValueError("no id")
    try:
        return Trajectory.from_dict(value)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__} {error}") from error


def _torn(file: IO[bytes], size: int) -> bool:
    if not size:
        return False
    file.seek(size - 1)
    return file.read(1) != b"\n"


def read_trajectories(path: Path | str) -> tuple[Iterator[Trajectory], list[Skipped]]:
    """(trajectories in the order of the ledger, what was skipped); the list fills while the iterator runs."""
    file = ledger(Path(path))
    skipped: list[Skipped] = []
    return _read(file, skipped), skipped


def _read(file: Path, skipped: list[Skipped]) -> Iterator[Trajectory]:
    seen: set[str] = set()
    for number, value in lines(file, skipped) if file.exists() else ():
        try:
            trajectory = _parse(value)
        except ValueError as error:
            reason = f"not a trajectory: {error}"
            skipped.append(Skipped(file=str(file), line=number, reason=reason, kind="trajectory"))
            continue
        if trajectory.id in seen:
            skipped.append(Skipped(file=str(file), line=number, reason="id already read", kind="duplicate"))
            continue
        seen.add(trajectory.id)
        yield trajectory
