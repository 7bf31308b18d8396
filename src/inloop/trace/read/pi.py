"""Pi sessions, version 3 and the linear version 1: a real tree; compaction keeps entries from `firstKeptEntryId`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from inloop.trace.read.build import Forest, moment, obj, result
from inloop.trace.read.messages import parts_of
from inloop.trace.read.place import Bad, Place
from inloop.trace.trajectory import Trajectory
from inloop.types import Message, Text, message

NAME = "pi"
_QUIET = {"model_change", "thinking_level_change", "custom", "label", "session_info"}
_ROLES = {"user", "assistant", "toolResult", "bashExecution", "custom", "branchSummary", "compactionSummary"}
_SUMMARIES = {"branchSummary": "branch summary", "compactionSummary": "compaction"}


@dataclass(slots=True)
class _Session:
    forest: Forest
    place: Place
    node_of: dict[str, str | None] = field(default_factory=dict)
    """entry id -> the node that the path ends with there; entries without a message are transparent."""
    lost_parents: int = 0


class Reader:
    name = NAME

    def __init__(self) -> None:
        self._sessions: list[_Session] = []

    def owns(self, record: dict[str, Any]) -> bool:
        kind = record.get("type")
        if kind == "session":
            return "harness" not in record and ("cwd" in record or "version" in record)
        if kind == "message":
            inner = obj(record.get("message"))
            return str(inner.get("role")) in _ROLES and ("parentId" in record or isinstance(inner.get("content"), list))
        return isinstance(kind, str) and "parentId" in record

    def feed(self, record: dict[str, Any], place: Place) -> str:
        kind = str(record.get("type"))
        if kind == "session":
            meta = {"cwd": record.get("cwd"), "parent_session": record.get("parentSession")}
            forest = Forest(NAME, place, name=str(record.get("id") or ""), **meta)
            self._sessions.append(_Session(forest, place.at(0)))
            return "session"
        if not self._sessions:
            self._sessions.append(_Session(Forest(NAME, place), place.at(0)))
        session = self._sessions[-1]
        own = record.get("id")
        if isinstance(own, str) and own in session.node_of:
            raise Bad("duplicate record: this entry id was read before")
        parent = self._parent(session, record)
        what = self._entry(session, kind, record, parent, place)
        if isinstance(own, str):
            session.node_of[own] = session.forest.last
        return what

    def flush(self) -> Iterator[tuple[Trajectory | None, Place]]:
        while len(self._sessions) > 1:
            yield _close(self._sessions.pop(0))

    def finish(self) -> Iterator[tuple[Trajectory | None, Place]]:
        while self._sessions:
            yield _close(self._sessions.pop(0))

    def _parent(self, session: _Session, record: dict[str, Any]) -> str | None:
        """Version 1 has no ids: each entry follows the last."""
        if "parentId" not in record:
            return session.forest.last
        parent = record["parentId"]
        if parent is None:
            return None
        if parent not in session.node_of:
            session.lost_parents += 1
            return session.forest.last
        return session.node_of[parent]

    def _entry(self, session: _Session, kind: str, record: dict[str, Any], parent: str | None, place: Place) -> str:
        forest, time = session.forest, moment(record.get("timestamp"))
        if kind in _QUIET:
            forest.last = parent
            if kind == "model_change" and isinstance(record.get("modelId"), str):
                forest.trajectory.model = record["modelId"]
            return kind
        own = str(record.get("id") or "")
        if kind == "message":
            said, sampled = _message(obj(record.get("message")), place)
            forest.add(said, parent=parent, sampled=sampled, line=place.line, time=time, node_id=own)
        elif kind == "compaction":
            self._compaction(session, record, parent, place)
        elif kind == "branch_summary":
            said = message("user", str(record.get("summary") or ""), origin="branch summary")
            forest.add(said, parent=parent, line=place.line, time=time, node_id=own)
        elif kind == "custom_message":
            said = Message(role="user", parts=tuple(parts_of(record.get("content"), place)), origin="harness")
            forest.add(said, parent=parent, line=place.line, time=time, node_id=own)
        else:
            raise Bad(f"unknown record {kind}")
        return ""

    def _compaction(self, session: _Session, record: dict[str, Any], parent: str | None, place: Place) -> None:
        """A new context: the summary, then copies of the path from the first kept entry on."""
        forest = session.forest
        index = forest.trajectory.by_id()
        path = forest.trajectory.path(index[parent]) if parent else []
        first = session.node_of.get(str(record.get("firstKeptEntryId")))
        kept = next((path[i:] for i, n in enumerate(path) if n.id == first), [])
        summary = message("user", str(record.get("summary") or ""), origin="compaction")
        forest.add(summary, parent=None, line=place.line, node_id=str(record.get("id") or ""))
        for node in kept:
            old = node.message
            copy = Message(role=old.role, parts=old.parts, call_id=old.call_id, is_error=old.is_error, origin="copy")
            forest.add(copy, line=(node.source or ("", 0))[1], node_id=f"{node.id}.kept")


def _message(inner: dict[str, Any], place: Place) -> tuple[Message, bool]:
    """(message, the model wrote it whole)."""
    role = inner.get("role")
    if role == "assistant":
        stopped = inner.get("stopReason") in ("aborted", "error")
        parts = tuple(parts_of(inner.get("content"), place))
        return Message(role="assistant", parts=parts, origin="aborted" if stopped else None), not stopped
    if role == "toolResult":
        parts = tuple(parts_of(inner.get("content"), place)) or (Text(text=""),)
        own = inner.get("toolCallId")
        return result(str(own) if own else None, "", parts=parts, is_error=bool(inner.get("isError"))), False
    if role == "bashExecution":
        text = f"$ {inner.get('command', '')}\n{inner.get('output', '')}"
        return message("user", text, origin="shell"), False
    if role in _SUMMARIES:
        return message("user", str(inner.get("summary") or ""), origin=_SUMMARIES[str(role)]), False
    if role not in _ROLES:
        raise Bad(f"unknown role {role}")
    parts = tuple(parts_of(inner.get("content"), place)) or (Text(text=""),)
    return Message(role="user", parts=parts, origin="harness" if role == "custom" else None), False


def _close(session: _Session) -> tuple[Trajectory | None, Place]:
    trajectory = session.forest.trajectory
    if not any(n.message.role == "assistant" for n in trajectory.nodes):
        session.place.skip("no assistant message", kind="session")
        return None, session.place
    trajectory.agent = {"name": NAME, "version": ""}
    trajectory.meta["missing"] = ["system prompt", "tools"]
    if session.lost_parents:
        trajectory.meta["lost_parents"] = session.lost_parents
    return trajectory, session.place
