"""opencode: `export` documents, the SQLite database, and the older folder of JSON files.

Call and result are one part. A result with `time.compacted` was a placeholder in every later context; a summary turn
starts a new context."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from inloop.trace.jsonl import loads
from inloop.trace.read.build import Forest, Seen, call, moment, obj, result, thinking
from inloop.trace.read.place import SHAPES, Bad, Place, image_of, why
from inloop.trace.trajectory import Trajectory
from inloop.types import Message, Part, Text

NAME = "opencode"
CLEARED = "[Old tool result content cleared]"
"""What opencode shows in place of a compacted result."""
_QUIET = {"step-start", "step-finish", "patch", "snapshot", "agent", "retry", "compaction"}


def sniff(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list) or not isinstance(row.get("info"), dict):
        return False
    return "directory" in row["info"] or any("parts" in obj(m) for m in row["messages"])


def read(row: dict[str, Any], place: Place) -> Trajectory:
    """One session as `opencode export` writes it."""
    info = row["info"]
    meta = {"cwd": info.get("directory"), "parent_session": info.get("parentID"), "title": info.get("title")}
    forest = Forest(NAME, place, name=str(info.get("id") or ""), **meta)
    session = _Session(forest, place)
    for message in row["messages"]:
        if not isinstance(message, dict) or not isinstance(message.get("info"), dict):
            raise Bad("a message without info")
        session.take(message["info"], [p for p in message.get("parts") or () if isinstance(p, dict)])
    trajectory = forest.done()
    trajectory.agent = {"name": NAME, "version": str(info.get("version") or "")}
    trajectory.meta["missing"] = [*([] if session.has_system else ["system prompt"]), "tools"]
    return trajectory


class _Session:
    """Messages in their order, each turn after the context that it was sampled in."""

    def __init__(self, forest: Forest, place: Place) -> None:
        self.forest, self.place = forest, place
        self.view: list[Seen] = []
        self.compacted: list[tuple[float, int, Message]] = []
        """(when, place in the view, what is seen from then on)."""
        self.has_system = False

    def take(self, info: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        time = moment(obj(info.get("time")).get("created"))
        if info.get("role") == "user":
            self._user(info, parts, time)
        elif info.get("role") == "assistant":
            self._assistant(info, parts, time)
        else:
            raise Bad(f"unknown role {str(info.get('role'))[:40]!r}")

    def _user(self, info: dict[str, Any], parts: list[dict[str, Any]], time: float | None) -> None:
        system = info.get("system")
        if isinstance(system, str) and system and not self.has_system:
            self.has_system = True
            self._add(Message(role="system", parts=(Text(text=system),)), time)
        if any(p.get("type") == "compaction" for p in parts):
            self._add(Message(role="user", parts=(Text(text="What did we do so far?"),), origin="compaction"), time)
            return
        own: list[Part] = []
        for part in parts:
            own += self._user_part(part)
        synthetic = bool(parts) and all(p.get("synthetic") for p in parts if p.get("type") == "text")
        origin = "harness" if synthetic and own else None
        self._add(Message(role="user", parts=tuple(own) or (Text(text=""),), origin=origin), time)

    def _user_part(self, part: dict[str, Any]) -> list[Part]:
        kind = part.get("type")
        if kind == "text":
            return [] if part.get("ignored") else [Text(text=str(part.get("text") or ""))]
        if kind == "file":
            if str(part.get("mime", "")).startswith("image/"):
                return [image_of({"url": str(part.get("url") or ""), "media_type": part["mime"]}, self.place)]
            self.place.block("a file part, whose rendering is not recorded")
        elif kind == "subtask":
            return [Text(text=str(part.get("prompt") or ""))]
        elif kind not in _QUIET:
            self.place.block(f"unknown part {kind}")
        return []

    def _assistant(self, info: dict[str, Any], parts: list[dict[str, Any]], time: float | None) -> None:
        self._age(time)
        said: list[Part] = []
        answers: list[tuple[Message, float | None]] = []
        for part in parts:
            kind = part.get("type")
            if kind == "text":
                said += [] if part.get("ignored") else [Text(text=str(part.get("text") or ""))]
            elif kind == "reasoning":
                said.append(thinking(part.get("text")))
            elif kind == "tool":
                said.append(self._tool(part, answers))
            elif kind not in _QUIET:
                self.place.block(f"unknown part {kind}")
        failed = bool(info.get("error"))
        if not said and failed:
            self.place.block("a turn that failed before it said anything")
            return
        model = info.get("modelID")
        self.forest.trajectory.model = model if isinstance(model, str) else self.forest.trajectory.model
        turn = Message(role="assistant", parts=tuple(said), origin="aborted" if failed else None)
        self._add(turn, time, sampled=bool(said) and not failed)
        for answer, compacted in answers:
            self._add(answer, time)
            if compacted is not None:
                seen = result(answer.call_id, CLEARED, is_error=answer.is_error, origin="compaction")
                self.compacted.append((compacted, len(self.view) - 1, seen))
        if info.get("summary") is True:
            self._summarised(turn)

    def _tool(self, part: dict[str, Any], answers: list[tuple[Message, float | None]]) -> Part:
        state = obj(part.get("state"))
        status = state.get("status")
        made = call(
            part.get("callID"), part.get("tool"), state.get("raw") if status == "pending" else state.get("input")
        )
        if status in ("completed", "error"):
            text = state.get("output") if status == "completed" else state.get("error")
            more: list[Part] = [Text(text=text if isinstance(text, str) else "")]
            for file in state.get("attachments") or ():
                if str(obj(file).get("mime", "")).startswith("image/"):
                    more.append(image_of({"url": str(file.get("url") or ""), "media_type": file["mime"]}, self.place))
            answer = result(made.id, "", parts=tuple(more), is_error=status == "error")
            answers.append((answer, moment(obj(state.get("time")).get("compacted"))))
        elif status not in ("pending", "running"):
            self.place.block(f"unknown tool status {status}")
        return made

    def _add(self, message: Message, time: float | None, **kw: Any) -> None:
        self.forest.add(message, time=time, **kw)
        self.view.append((message, self.place.line))

    def _age(self, now: float | None) -> None:
        """Results that were cleared before this turn are placeholders in its context."""
        due = [c for c in self.compacted if now is not None and c[0] <= now]
        if due:
            for _, at, seen in due:
                if at < len(self.view):
                    self.view[at] = (seen, self.place.line)
            self.compacted = [c for c in self.compacted if c not in due]
            self.forest.see(self.view)

    def _summarised(self, turn: Message) -> None:
        """From here on the model sees the question for a summary and the summary."""
        copy = Message(role="assistant", parts=turn.parts, origin="compaction")
        asked = [m for m in self.view[:-1] if m[0].origin == "compaction" and m[0].role == "user"][-1:]
        system = [m for m in self.view[:1] if m[0].role == "system"]
        self.view = [*system, *asked, (copy, self.place.line)]
        self.compacted = []
        self.forest.see(self.view)


def read_database(path: Path, place: Place) -> Iterator[tuple[Trajectory | None, Place]]:
    """Each session of an `opencode.db`, opened read-only and immutable: no lock, no journal, nothing written."""
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            columns = {row[1] for row in database.execute("pragma table_info(session)")}
            if not {"id", "directory"} <= columns:
                place.skip("no opencode database: it has no session table", kind="file")
                return
            optional = [c for c in ("parent_id", "title", "version") if c in columns]
            for number, row in enumerate(
                database.execute(f"select id, directory{''.join(', ' + c for c in optional)} from session order by id"),
                1,
            ):
                extra: dict[str, Any] = dict(zip(optional, row[2:], strict=True))
                info: dict[str, Any] = {"id": row[0], "directory": row[1], "parentID": extra.get("parent_id")}
                info.update(extra)
                yield _session(database, info, place.at(number))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # sqlite3 decodes its own message of a torn schema
        place.skip(f"the database can't be read: {error}", kind="file")


def _session(database: sqlite3.Connection, info: dict[str, Any], place: Place) -> tuple[Trajectory | None, Place]:
    query = "select id, data, time_created from message where session_id = ? order by time_created, id"
    messages: list[dict[str, Any]] = []
    for message_id, data, created in database.execute(query, (info["id"],)):
        parts = []
        rows = database.execute("select id, data from part where message_id = ? order by id", (message_id,))
        for _, raw in rows:
            parts += _json(raw, "part", place)
        for inner in _json(data, "message", place):
            inner.setdefault("time", {"created": created})
            messages.append({"info": {**inner, "id": message_id}, "parts": parts})
    try:
        return read({"info": info, "messages": messages}, place), place
    except SHAPES as error:
        place.skip(why(error), kind="record")
        return None, place


def _json(raw: Any, what: str, place: Place) -> list[dict[str, Any]]:
    try:
        value = loads(raw.encode() if isinstance(raw, str) else bytes(raw))
    except (ValueError, TypeError):
        value = None
    if isinstance(value, dict):
        return [value]
    place.block(f"a {what} row that is not JSON")
    return []


def is_storage(folder: Path) -> bool:
    """The layout before the database: session/<project>/<id>.json, message/<session>/, part/<message>/."""
    return (folder / "session").is_dir() and (folder / "message").is_dir() and (folder / "part").is_dir()


def read_storage(folder: Path, place: Place) -> Iterator[tuple[Trajectory | None, Place]]:
    for number, path in enumerate(sorted((folder / "session").glob("*/*.json")), 1):
        here = place.at(number)
        messages = []
        for inner in (m for f in _files(folder / "message" / path.stem) for m in _load(f, here)):
            parts = [p for f in _files(folder / "part" / str(inner.get("id"))) for p in _load(f, here)]
            messages.append({"info": inner, "parts": parts})
        info = _load(path, here)
        if not info:
            continue
        try:
            yield read({"info": info[0], "messages": messages}, here), here
        except SHAPES as error:
            here.skip(f"{path.name}: {why(error)}", kind="record")
            yield None, here


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def _load(path: Path, place: Place) -> list[dict[str, Any]]:
    try:
        value = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        place.skip(f"{path.name}: {error}", kind="file")
        return []
    if isinstance(value, dict):
        return [value]
    place.skip(f"{path.name}: not an object", kind="file")
    return []
