"""The tree of a Claude Code session: content in file order, parents for branches, parallel results in one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from inloop.trace.read.build import Forest, result
from inloop.trace.read.place import Place
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Message, Part


@dataclass(slots=True)
class Entry:
    kind: Literal["user", "assistant", "boundary"]
    uuid: str
    parent: str
    chain: str = ""
    """'' is the main agent; else the id of a sub-agent."""
    line: int = 0
    file: str = ""
    time: float | None = None
    origin: str | None = None
    response: str = ""
    """`message.id`: records that share it are one turn."""
    parts: Sequence[Part] = ()
    results: Sequence[tuple[str, list[Part], bool]] = ()
    """(call id, content, is an error)."""
    data: dict[str, Any] | None = None
    merged: tuple[Entry, ...] = ()
    """Later records of the same response."""


class Session(Protocol):
    key: str
    place: Place
    entries: list[Entry]
    above: dict[str, str]
    models: Any
    meta: dict[str, Any]
    spawned: dict[str, str]


def grow(source_format: str, session: Session) -> Trajectory:
    tree = _Tree(source_format, session)
    for entry in _merged(session.entries):
        tree.take(entry)
    tree.link()
    trajectory = tree.forest.done() if tree.has_assistant() else tree.forest.trajectory
    trajectory.agent = {"name": "claude-code", "version": session.meta.get("version", "")}
    trajectory.model = session.models.most_common(1)[0][0] if session.models else None
    trajectory.meta["missing"] = ["system prompt", "tools"]
    if tree.lost_parents:
        trajectory.meta["lost_parents"] = tree.lost_parents
    return trajectory


def _merged(entries: list[Entry]) -> list[Entry]:
    """One entry a response, at the place of its first record, blocks in file order."""
    first: dict[tuple[str, str], Entry] = {}
    out = []
    for entry in entries:
        key = (entry.chain, entry.response)
        if entry.kind == "assistant" and entry.response and key in first:
            _join(first[key], entry)
            continue
        if entry.kind == "assistant":
            first[key] = entry
        out.append(entry)
    return out


def _join(turn: Entry, more: Entry) -> None:
    """Add the blocks of a later record; a copy that repeats a call under a new uuid adds nothing."""
    known = {p.id for p in turn.parts if isinstance(p, Call)}
    turn.parts = (*turn.parts, *(p for p in more.parts if not (isinstance(p, Call) and p.id in known)))
    turn.merged = (*turn.merged, more)


class _Tree:
    def __init__(self, source_format: str, session: Session) -> None:
        self.session = session
        meta = {k: v for k, v in session.meta.items() if k != "version"}
        self.forest = Forest(source_format, session.place, name=session.key, **meta)
        self.node_of: dict[str, str] = {}
        """uuid -> the node that holds its record."""
        self.tail: dict[str, str] = {}
        """turn -> its newest result; a result -> the newest of its row."""
        self.turn_of: dict[str, str] = {}
        """node of a result -> node of its turn."""
        self.newest: dict[str, str] = {}
        """chain -> its newest node."""
        self.calls: dict[str, str] = {}
        """call id -> node of the newest turn that made it."""
        self.roots: dict[str, Node] = {}
        self.preserved: list[str] = []
        """uuids that the newest compaction kept, until its summary comes."""
        self.lost_parents = 0

    def has_assistant(self) -> bool:
        return any(n.message.role == "assistant" for n in self.forest.trajectory.nodes)

    def take(self, entry: Entry) -> None:
        if entry.kind == "boundary":
            self._boundary(entry)
        elif entry.kind == "assistant":
            self._assistant(entry)
        else:
            self._user(entry)

    def _assistant(self, entry: Entry) -> None:
        said = Message(role="assistant", parts=tuple(entry.parts), origin=entry.origin)
        node = self._add(entry, said, self._parent(entry), sampled=entry.origin is None and bool(entry.parts))
        for more in entry.merged:
            self.node_of[more.uuid] = node.id
        for call in said.calls:
            self.calls[call.id] = node.id

    def _user(self, entry: Entry) -> None:
        parent = self._parent(entry)
        for call_id, parts, failed in entry.results:
            turn = self.calls.get(call_id)
            at = self.tail.get(turn, turn) if turn else parent
            answer = result(call_id or None, "", parts=tuple(parts), is_error=failed)
            node = self._add(entry, answer, at)
            if turn:
                self.tail[turn], self.turn_of[node.id] = node.id, turn
            parent = node.id
        if entry.parts or not entry.results:
            self._add(entry, Message(role="user", parts=tuple(entry.parts), origin=entry.origin), parent)
        if self.preserved and entry.origin == "compaction":
            self._preserve(entry)

    def _add(self, entry: Entry, message: Message, parent: str | None, **kw: Any) -> Node:
        own = entry.uuid if not entry.chain else f"{entry.chain}:{entry.uuid}"
        node = self.forest.add(message, parent=parent, line=entry.line, time=entry.time, node_id=own, **kw)
        if entry.file:
            node.source = (entry.file, entry.line)
        self.node_of[entry.uuid] = node.id
        self.newest[entry.chain] = node.id
        if parent is None and entry.chain:
            self.roots.setdefault(entry.chain, node)
        return node

    def _parent(self, entry: Entry) -> str | None:
        """The node of `parentUuid`, through records without a message; behind parallel results, the last of them."""
        uuid, hops = entry.parent, 0
        while uuid and uuid not in self.node_of and uuid in self.session.above and hops < 10_000:
            uuid, hops = self.session.above[uuid], hops + 1
        if not uuid:
            return None
        node = self.node_of.get(uuid)
        if node is None:
            self.lost_parents += 1
            return self.newest.get(entry.chain)
        turn = self.turn_of.get(node, node)
        return self.tail.get(turn, node)

    def _boundary(self, entry: Entry) -> None:
        """A new context: the summary that follows, then what the compaction preserved."""
        data = entry.data or {}
        messages = data.get("preservedMessages")
        uuids = messages.get("uuids") if isinstance(messages, dict) else messages
        if not isinstance(uuids, list):
            segment = data.get("preservedSegment")
            uuids = self._between(segment) if isinstance(segment, dict) else []
        self.preserved = [u for u in uuids if isinstance(u, str) and u in self.node_of]

    def _preserve(self, summary: Entry) -> None:
        """Copies behind the summary; what names a preserved record as its parent follows its copy."""
        index = self.forest.trajectory.by_id()
        copies: dict[str, str] = {}
        at = self.node_of[summary.uuid]
        for uuid in self.preserved:
            old = index[self.node_of[uuid]]
            if old.id not in copies:
                at = self.forest.add(_copied(old.message), parent=at, time=old.time, node_id=f"{old.id}.kept").id
                self.calls.update((c.id, at) for c in old.message.calls)
                self.forest.trajectory.nodes[-1].source = old.source
                copies[old.id] = at
            self.node_of[uuid] = copies[old.id]
        self.node_of[summary.uuid] = self.newest[""] = at
        self.preserved = []

    def _between(self, segment: dict[str, Any]) -> list[str]:
        order = list(self.node_of)
        ends = [str(segment.get(k)) for k in ("headUuid", "tailUuid")]
        if not all(e in self.node_of for e in ends):
            return []
        return order[order.index(ends[0]) : order.index(ends[1]) + 1]

    def link(self) -> None:
        """Sub-agents to the calls that spawned them: by record, else by the prompt that they were given."""
        prompts = {}
        for node in self.forest.trajectory.nodes:
            for call in node.message.calls:
                prompt = (call.arguments or {}).get("prompt")
                if isinstance(prompt, str):
                    prompts[prompt] = call.id
        for agent, root in self.roots.items():
            self.forest.subagent(root, self.session.spawned.get(agent) or prompts.get(root.message.text), agent)


def _copied(message: Message) -> Message:
    return Message(
        role=message.role, parts=message.parts, call_id=message.call_id, is_error=message.is_error, origin="copy"
    )
