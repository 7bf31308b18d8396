"""Claude Code sessions: append-only JSONL without a public schema, a tree by `parentUuid`.

One response is several records with one `message.id`, one block each. A `compact_boundary` starts a new context.
Sub-agents have files of their own, or `isSidechain` records inline in older versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from inloop.trace.read.build import moment, obj
from inloop.trace.read.claude_tree import Entry, grow
from inloop.trace.read.messages import parts_of
from inloop.trace.read.place import Bad, Place
from inloop.trace.trajectory import Trajectory
from inloop.types import Text

NAME = "claude-code"
POINTERS = {
    "mode", "result", "ai-title", "custom-title", "permission-mode", "last-prompt", "file-history-snapshot",
    "file-history-delta", "queue-operation", "agent-name", "agent-color", "pr-link", "started", "worktree-state",
    "agent-setting", "summary", "progress", "attachment", "tag", "content-replacement", "context-collapse",
}  # fmt: skip
"""Records without a message; `attachment` was in the prompt, but how it was rendered is not recorded."""
_SYSTEM = {
    "compact_boundary", "microcompact_boundary", "api_error", "local_command", "turn_duration", "stop_hook_summary",
    "informational", "away_summary", "bridge_status", "model_refusal_fallback", "scheduled_task_fire",
}  # fmt: skip
OPEN_SESSIONS = 64
"""How many sessions of one file are held at a time; files that glue more than these are cut, and it is said."""


@dataclass(slots=True)
class _Session:
    """What is kept of a session until its tree can be grown."""

    key: str
    place: Place
    entries: list[Entry] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    above: dict[str, str] = field(default_factory=dict)
    """uuid of a record without a message -> its parent: transparent in the tree."""
    models: Counter[str] = field(default_factory=Counter)
    meta: dict[str, Any] = field(default_factory=dict)
    touched: int = 0
    """The newest line that belongs to it."""
    spawned: dict[str, str] = field(default_factory=dict)
    """agent id -> the call that spawned it."""


class Reader:
    """Fed with the records of a file in their order; sessions that are interleaved are told apart."""

    name = NAME

    def __init__(self) -> None:
        self._open: dict[str, _Session] = {}
        self._alias: dict[str, str] = {}

    def owns(self, record: dict[str, Any]) -> bool:
        kind = record.get("type")
        if "uuid" in record and ("parentUuid" in record or "sessionId" in record):
            return True
        if "payload" in record and "timestamp" in record:
            return False
        return isinstance(kind, str) and ("sessionId" in record or kind in ("file-history-snapshot", "summary"))

    def feed(self, record: dict[str, Any], place: Place) -> str:
        """'' when the record is part of a message, else the kind of metadata that it is. Raises Bad."""
        kind = str(record.get("type"))
        session = self._session(record, place)
        session.touched = place.line
        uuid = record.get("uuid")
        if kind in POINTERS or kind == "system" or not isinstance(record.get("message"), dict):
            return self._metadata(session, record, kind)
        if kind not in ("user", "assistant"):
            raise Bad(f"unknown record {kind}")
        if isinstance(uuid, str) and uuid in session.seen:
            raise Bad("duplicate record: this uuid was read before")
        entry = _entry(record, place)
        if isinstance(uuid, str):
            session.seen.add(uuid)
        session.entries.append(entry)
        _remember(session, record)
        return ""

    def flush(self) -> Iterator[tuple[Trajectory | None, Place]]:
        """Sessions beyond the limit, the longest untouched first."""
        while len(self._open) > OPEN_SESSIONS:
            yield self._close(min(self._open, key=lambda key: self._open[key].touched))

    def finish(self) -> Iterator[tuple[Trajectory | None, Place]]:
        while self._open:
            yield self._close(next(iter(self._open)))

    def link(self, agent_id: str, call_id: str) -> None:
        """From `agent-<id>.meta.json`: which call spawned the agent."""
        for session in self._open.values():
            session.spawned.setdefault(agent_id, call_id)

    def _close(self, key: str) -> tuple[Trajectory | None, Place]:
        session = self._open.pop(key)
        if not session.entries:
            session.place.skip("no messages, only metadata", kind="session")
            return None, session.place
        return grow(NAME, session), session.place

    def _session(self, record: dict[str, Any], place: Place) -> _Session:
        own = str(record.get("sessionId") or "")
        own = self._alias.get(own, own)
        parent = record.get("parentUuid")
        if not own and self._open:
            own = max(self._open, key=lambda key: self._open[key].touched)
        if own not in self._open and isinstance(parent, str):  # a resumed file goes on under a new session id
            for key, session in self._open.items():
                if parent in session.seen or parent in session.above:
                    self._alias[own] = own = key
                    break
        if own not in self._open:
            self._open[own] = _Session(own, place.at(0))
        return self._open[own]

    def _metadata(self, session: _Session, record: dict[str, Any], kind: str) -> str:
        uuid, parent = record.get("uuid"), record.get("parentUuid")
        if isinstance(uuid, str):
            if uuid in session.seen:
                raise Bad("duplicate record: this uuid was read before")
            session.seen.add(uuid)
            session.above[uuid] = parent if isinstance(parent, str) else ""
        if kind == "system":
            subtype = str(record.get("subtype"))
            if subtype == "compact_boundary":
                session.entries.append(
                    Entry(kind="boundary", uuid=str(uuid), parent="", data=obj(record.get("compactMetadata")))
                )
            elif subtype not in _SYSTEM:
                raise Bad(f"unknown system record {subtype}")
            return f"system {subtype}"
        if kind in POINTERS:
            return kind
        raise Bad(f"unknown record {kind}" if kind not in ("user", "assistant") else f"{kind} record without a message")


_META = (("cwd", "cwd"), ("version", "version"), ("gitBranch", "branch"))


def _remember(session: _Session, record: dict[str, Any]) -> None:
    if len(session.meta) < len(_META):
        for key, name in _META:
            if isinstance(record.get(key), str) and record[key]:
                session.meta.setdefault(name, record[key])
    model = record["message"].get("model")
    if isinstance(model, str) and model != "<synthetic>":
        session.models[model] += 1
    told = record.get("toolUseResult")
    agent = told.get("agentId") if isinstance(told, dict) else None
    content = record["message"].get("content")
    if isinstance(agent, str) and isinstance(content, list):
        for block in content:
            if obj(block).get("type") == "tool_result":
                session.spawned[agent] = str(block.get("tool_use_id"))


def _entry(record: dict[str, Any], place: Place) -> Entry:
    message = record["message"]
    entry = Entry(
        kind=record["type"],
        uuid=str(record.get("uuid") or ""),
        parent=str(record.get("parentUuid") or ""),
        chain=str(record.get("agentId") or "side") if record.get("isSidechain") else "",
        line=place.line,
        file=place.file,
        time=moment(record.get("timestamp")),
    )
    if entry.kind == "assistant":
        entry.response = str(message.get("id") or "")
        if record.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            entry.origin = "harness"
        entry.parts = parts_of(message.get("content"), place)
        return entry
    if record.get("isCompactSummary"):
        entry.origin = "compaction"
    elif record.get("isMeta"):
        entry.origin = "harness"
    _user(entry, message.get("content"), place)
    return entry


def _user(entry: Entry, content: Any, place: Place) -> None:
    if not isinstance(content, list):
        entry.parts = parts_of(content, place) or [Text(text="")]
        return
    rest, results = [], []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            parts = parts_of(block.get("content"), place) or [Text(text="")]
            results.append((str(block.get("tool_use_id") or ""), parts, bool(block.get("is_error"))))
        else:
            rest.append(block)
    entry.results = results
    entry.parts = parts_of(rest, place) if rest else ()
