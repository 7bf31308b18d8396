"""Inspect logs: `.eval` archives (members compressed with zstd, method 93) and `.json` logs.

`messages` is the final state only; the model events hold the contexts, also those before a compaction."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inloop.errors import DataError
from inloop.trace.jsonl import dump, loads
from inloop.trace.read.build import Forest, Seen, moment, obj, outcome, result, tools_of
from inloop.trace.read.messages import assistant, parts_of, role_of
from inloop.trace.read.place import SHAPES, Bad, Place, why
from inloop.trace.trajectory import Trajectory
from inloop.types import Message, Text

NAME = "inspect"
ZSTD = 93
MAX_MEMBER = 1 << 31
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")


def sniff(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("eval"), dict) and "samples" in row


def read_log(row: dict[str, Any], place: Place) -> Iterator[tuple[Trajectory | None, Place]]:
    """Each sample of a `.json` log."""
    for number, sample in enumerate(row.get("samples") or (), 1):
        yield _try(obj(sample), obj(row["eval"]), place.at(number))


def is_archive(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return any(n.startswith("samples/") for n in names) or "header.json" in names or "_journal/start.json" in names


def read_archive(path: Path, place: Place) -> Iterator[tuple[Trajectory | None, Place]]:
    with zipfile.ZipFile(path) as archive:
        head: dict[str, Any] = {}
        names = {i.filename: i for i in archive.infolist()}
        for name in ("header.json", "_journal/start.json"):
            if name in names and not head:
                head = obj(_load(path, names[name], place))
        samples = [i for n, i in names.items() if n.startswith("samples/") and n.endswith(".json")]
        if not samples:
            place.skip("no samples in the log", kind="file")
        for number, info in enumerate(samples, 1):
            value = _load(path, info, place.at(number))
            if isinstance(value, dict):
                yield _try(value, obj(head.get("eval")), place.at(number))


def _load(path: Path, info: zipfile.ZipInfo, place: Place) -> Any:
    try:
        return loads(member(path, info))
    except (ValueError, OSError, struct.error, zipfile.BadZipFile, NotImplementedError) as error:
        place.skip(f"{info.filename}: {error}", kind="file")
        return None


def member(path: Path, info: zipfile.ZipInfo) -> bytes:
    """The bytes of one member; Python reads zstd members itself from 3.14 on only."""
    if info.file_size > MAX_MEMBER:
        raise ValueError(f"larger than {MAX_MEMBER >> 30} GiB")
    if info.compress_type != ZSTD:
        with zipfile.ZipFile(path) as archive:
            return archive.read(info)
    with path.open("rb") as file:
        file.seek(info.header_offset)
        head = file.read(30)
        name, extra = struct.unpack("<HH", head[26:30])
        if head[:4] != b"PK\x03\x04":
            raise ValueError("damaged member header")
        file.seek(name + extra, 1)
        return _unzstd(file.read(info.compress_size), info.file_size)


def _unzstd(raw: bytes, size: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise DataError("this log is compressed with zstd", fix="pip install 'inloop[data]'") from None
    try:
        data = zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    except zstandard.ZstdError as error:
        raise ValueError(f"damaged: {error}") from None
    if len(data) != size:
        raise ValueError(f"damaged: {len(data)} of {size} bytes")
    return data


def _try(sample: dict[str, Any], evaluation: dict[str, Any], place: Place) -> tuple[Trajectory | None, Place]:
    try:
        return _sample(sample, evaluation, place), place
    except SHAPES as error:
        place.skip(why(error))
        return None, place


def _sample(sample: dict[str, Any], evaluation: dict[str, Any], place: Place) -> Trajectory:
    attachments = obj(sample.get("attachments"))
    name = f"{sample.get('id')}_epoch_{sample.get('epoch')}"
    forest = Forest(
        NAME,
        place,
        name=name,
        error=obj(sample.get("error")).get("message"),
        limit=obj(sample.get("limit")).get("type"),
    )
    reader = _Messages(forest, attachments)
    events = [e for e in sample.get("events") or () if obj(e).get("event") == "model"]
    for event in events:
        reader.event(event, obj(sample.get("events_data")))
    reader.end(sample.get("messages") or [], bool(events))
    trajectory = forest.done()
    trajectory.task_id = str(sample.get("id"))
    trajectory.model = str(evaluation.get("model") or "") or None
    trajectory.agent = {"name": NAME, "version": str(obj(evaluation.get("packages")).get("inspect_ai") or "")}
    trajectory.tools = tools_of(events[-1].get("tools") if events else [], place)
    scores = list(obj(sample.get("scores")).values())
    value = obj(scores[0]).get("value") if scores else None
    trajectory.reward = outcome({"C": True, "I": False}.get(value, value) if isinstance(value, str) else value)
    return trajectory


class _Messages:
    """Messages of a sample, each made once: contexts name them again and again."""

    def __init__(self, forest: Forest, attachments: dict[str, Any]) -> None:
        self.forest, self.attachments = forest, attachments
        self.known: dict[bytes, Message] = {}

    def event(self, event: dict[str, Any], data: dict[str, Any]) -> None:
        """One model call: its whole input, then what it wrote."""
        choices = obj(event.get("output")).get("choices")
        if not isinstance(choices, list) or not choices:
            self.forest.place.block("a model call without an answer")
            return
        pool = data.get("messages")
        said = obj(choices[0]).get("message")
        asked = _input(event, pool if isinstance(pool, list) else [])
        self.forest.see([self._seen(m) for m in (*asked, said)])
        node = self.forest.trajectory.node(str(self.forest.last))
        node.sampled, node.time = True, moment(event.get("timestamp"))

    def end(self, messages: list[Any], had_events: bool) -> None:
        """What the final state holds beyond the last call: results that no model saw; all of it without events."""
        views = [self._seen(m) for m in messages]
        if not had_events:
            for message, line in views:
                self.forest.add(message, sampled=message.role == "assistant", line=line)
            return
        last = max((i for i, (m, _) in enumerate(views) if m.role == "assistant"), default=-1)
        written = {id(n.message) for n in self.forest.trajectory.nodes}
        for message, line in views[last + 1 :]:
            if id(message) not in written:
                self.forest.add(message, line=line)

    def _seen(self, value: Any) -> Seen:
        return self._message(value), self.forest.place.line

    def _message(self, value: Any) -> Message:
        if not isinstance(value, dict):
            raise Bad("a message is not an object")
        key = dump([value.get(k) for k in ("role", "content", "tool_calls", "tool_call_id", "error")])
        if key not in self.known:
            self.known[key] = self._made(value)
        return self.known[key]

    def _made(self, value: dict[str, Any]) -> Message:
        value = self._attached(value)
        role = role_of(value.get("role"))
        if role == "assistant":
            return assistant({k: value.get(k) for k in ("content", "tool_calls")}, self.forest.place)
        parts = tuple(parts_of(value.get("content"), self.forest.place)) or (Text(text=""),)
        if role == "tool":
            own = value.get("tool_call_id")
            return result(str(own) if own else None, "", parts=parts, is_error=bool(value.get("error")))
        return Message(role=role, parts=parts)

    def _attached(self, value: Any) -> Any:
        """Long strings stand apart under their hash."""
        if isinstance(value, str):
            return _ATTACHMENT.sub(lambda m: str(self.attachments.get(m[1], m[0])), value)
        if isinstance(value, list):
            return [self._attached(v) for v in value]
        if isinstance(value, dict):
            return {k: self._attached(v) for k, v in value.items()}
        return value


def _input(event: dict[str, Any], pool: list[Any]) -> list[Any]:
    """The messages of a call: in place, or as ranges of the sample's pool."""
    out = list(event.get("input") or ())
    for reference in event.get("input_refs") or ():
        if isinstance(reference, list) and len(reference) == 2:
            out += pool[reference[0] : reference[1]]
    return out
