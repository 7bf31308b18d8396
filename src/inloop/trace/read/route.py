"""Which reader a record is for, found by its content; records of several formats in one file are told apart."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from inloop.trace.jsonl import dump
from inloop.trace.read import (
    anthropic,
    atif,
    chat,
    claude_code,
    codex,
    inloop,
    inspect_log,
    mini,
    opencode,
    openhands,
    pi,
    sharegpt,
    sts,
    swe_agent,
    terminus,
)
from inloop.trace.read.build import kind_of
from inloop.trace.read.place import SHAPES, Place, why
from inloop.trace.read.source import magic, records
from inloop.trace.trajectory import Trajectory, message_to_dict

ROWS: tuple[Any, ...] = (inloop, atif, mini, swe_agent, openhands, opencode, terminus, sharegpt, anthropic, chat)
"""Formats whose trajectory is one record: `sniff(row)`, `read(row, place)`. The narrower come first."""


class SessionReader(Protocol):
    """A format whose trajectory is many records."""

    name: str

    def owns(self, record: dict[str, Any]) -> bool: ...

    def feed(self, record: dict[str, Any], place: Place) -> str:
        """'' when the record became part of a message, else the kind of metadata that it is. Raises Bad."""
        ...

    def flush(self) -> Iterator[tuple[Trajectory | None, Place]]: ...

    def finish(self) -> Iterator[tuple[Trajectory | None, Place]]: ...


SESSIONS: tuple[Callable[[], SessionReader], ...] = (claude_code.Reader, codex.Reader, pi.Reader, sts.Reader)


@dataclass(slots=True)
class Tally:
    """Every record is in exactly one of these, or in `skipped` with its reason."""

    records: int = 0
    used: int = 0
    metadata: Counter[str] = field(default_factory=Counter)


def read_file(
    path: Path, place: Place, tally: Tally, companions: list[Companion] | None = None
) -> Iterator[Trajectory]:
    """The trajectories of one file of any format."""
    head = magic(path)
    if head.startswith(b"SQLite format 3\0"):
        yield from _whole(opencode.read_database(path, place), tally)
    elif head.startswith(b"PK\x03\x04"):
        if inspect_log.is_archive(path):
            yield from _whole(inspect_log.read_archive(path, place), tally)
        else:
            place.skip("an archive that is no Inspect log", kind="file")
    else:
        yield from _Route(place, tally).run(records(path, place), companions or [])


def read_folder(path: Path, place: Place, tally: Tally) -> Iterator[Trajectory]:
    """A folder that is one source: an OpenHands conversation, an opencode storage."""
    read = openhands.read_conversation if openhands.is_conversation(path) else opencode.read_storage
    yield from _whole(read(path, place), tally)


def _whole(found: Iterator[tuple[Trajectory | None, Place]], tally: Tally) -> Iterator[Trajectory]:
    for trajectory, _ in found:
        tally.records += 1
        if trajectory is not None:
            tally.used += 1
            yield finished(trajectory)


@dataclass(frozen=True, slots=True)
class Companion:
    """A file that belongs to a session: a sub-agent's."""

    path: Path
    name: str
    agent_id: str
    call_id: str | None


class _Route:
    def __init__(self, place: Place, tally: Tally) -> None:
        self.place, self.tally = place, tally
        self.sessions: list[SessionReader] = []
        self.row_reader: Any = None

    def run(self, found: Iterator[tuple[int, Any]], companions: list[Companion]) -> Iterator[Trajectory]:
        had = len(self.place.skipped)
        first = list(islice(found, 2))
        if not first and len(self.place.skipped) == had:
            self.place.skip("no records", kind="file")
        for line, value in chain(_as_one(first, found), found):
            yield from self._take(value, self.place.at(line))
        for companion in companions:
            self._accompany(companion)
        for reader in self.sessions:
            yield from self._done(reader.finish())

    def _accompany(self, companion: Companion) -> None:
        """The records of a sub-agent go to the session that spawned it."""
        place = Place(companion.name, 0, self.place.skipped, self.place.images)
        for line, value in records(companion.path, place):
            for _ in self._take(value, place.at(line)):
                raise AssertionError("a sub-agent's file holds only records of a session")
        for reader in self.sessions:
            if isinstance(reader, claude_code.Reader) and companion.call_id:
                reader.link(companion.agent_id, companion.call_id)

    def _take(self, value: Any, place: Place) -> Iterator[Trajectory]:
        self.tally.records += 1
        if isinstance(value, dict) and (reader := self._session(value)):
            try:
                kind = reader.feed(value, place)
            except SHAPES as error:
                place.skip(why(error))
                return
            if kind:
                self.tally.metadata[kind] += 1
            else:
                self.tally.used += 1
            yield from self._done(reader.flush())
            return
        yield from self._row(value, place)

    def _row(self, value: Any, place: Place) -> Iterator[Trajectory]:
        if inspect_log.sniff(value):
            had = len(place.skipped)
            found = [t for t, _ in inspect_log.read_log(value, place) if t is not None]
            if not found and len(place.skipped) == had:
                place.skip("no samples in the log", kind="session")
            self.tally.used += 1
            yield from map(finished, found)
            return
        reader = self.row_reader if self.row_reader and _first_claim(value, self.row_reader) else None
        reader = reader or next((r for r in ROWS if r.sniff(value)), None)
        if reader is None:
            kind = "an object of no known format" if isinstance(value, dict) else f"a {kind_of(value)}, not a record"
            place.skip(kind)
            return
        self.row_reader = reader
        try:
            trajectory = reader.read(value, place)
        except SHAPES as error:
            place.skip(why(error))
            return
        self.tally.used += 1
        yield finished(trajectory)

    def _session(self, record: dict[str, Any]) -> SessionReader | None:
        if not isinstance(record.get("type"), str):
            return None
        for place, reader in enumerate(self.sessions):
            if reader.owns(record):
                if place:  # the last one used is asked first
                    self.sessions.insert(0, self.sessions.pop(place))
                return reader
        have = {r.name for r in self.sessions}
        for make in SESSIONS:
            reader = make()
            if reader.name not in have and reader.owns(record):
                self.sessions.insert(0, reader)
                return reader
        return None

    def _done(self, found: Iterator[tuple[Trajectory | None, Place]]) -> Iterator[Trajectory]:
        for trajectory, _ in found:
            if trajectory is not None:
                yield finished(trajectory)


def _first_claim(value: Any, reader: Any) -> bool:
    """The reader of the last row may take this one only when no narrower one claims it."""
    for other in ROWS:
        if other is reader:
            return bool(reader.sniff(value))
        if other.sniff(value):
            return False
    return False


def _as_one(first: list[tuple[int, Any]], rest: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """An array of events or of messages is one record; of rows, many."""
    if len(first) == 2 and _is_element(first[0][1]):
        yield 1, [v for _, v in chain(first, rest)]
    else:
        yield from first


def _is_element(value: Any) -> bool:
    if not isinstance(value, dict) or "type" in value:
        return False
    return ("role" in value and "content" in value) or (openhands.sniff([value]) and "id" in value)


def finished(trajectory: Trajectory) -> Trajectory:
    """Counts, the same for every format: what the model did once, however many contexts show it."""
    _once(trajectory)
    turns = calls = results = 0
    shown: dict[str, bool] = {}
    """call id -> its newest turn is a copy or a demonstration."""
    for node in trajectory.nodes:
        message = node.message
        again = message.origin in ("copy", "demo", "compaction")
        if message.role == "assistant":
            made = message.all_calls
            turns, calls = turns + (not again), calls + (0 if again else len(made))
            for call in made:
                shown[call.id] = again
        elif message.role == "tool" or message.call_id is not None:
            results += not (again or shown.get(message.call_id or "", False))
    trajectory.counts |= {"turns": turns, "calls": calls, "results": results}
    return trajectory


def _once(trajectory: Trajectory) -> None:
    """A turn that a file holds twice after the same history (it was appended to itself) is sampled once."""
    parents = [n.parent for n in trajectory.nodes]
    if len(set(parents)) == len(parents):
        return
    chain: dict[str | None, bytes] = {None: b""}
    seen: set[bytes] = set()
    for node in trajectory.nodes:
        said = dump([message_to_dict(node.message), node.token_ids])
        key = chain[node.id] = hashlib.blake2b(chain[node.parent] + said, digest_size=16).digest()
        if node.sampled and key in seen:
            node.sampled, node.message = False, replace(node.message, origin="copy")
        elif node.sampled:
            seen.add(key)
