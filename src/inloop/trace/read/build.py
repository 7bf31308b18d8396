"""Helpers that every reader uses: a forest under construction, values of foreign JSON, calls with and without ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from inloop.trace.jsonl import quick
from inloop.trace.read.place import Bad, Place
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Message, Part, Reward, Text, Thinking, Verdict

Seen = tuple[Message, int]
"""A message of a context, and its line."""


class _Views:
    """Where each message object stands; kept only for a forest whose contexts change."""

    def __init__(self, nodes: list[Node]) -> None:
        self.places: dict[tuple[str | None, int], str] = {}
        self.stood: dict[int, Message] = {}
        for node in nodes:
            self.put(node)

    def put(self, node: Node) -> None:
        self.places.setdefault((node.parent, id(node.message)), node.id)
        self.stood[id(node.message)] = node.message


class Forest:
    """A trajectory that grows; each message follows the last one unless its parent is named."""

    def __init__(self, source_format: str, place: Place, *, name: str = "", **meta: Any) -> None:
        self.place = place
        self.last: str | None = None
        self.trajectory = Trajectory(id="", meta={"format": source_format, "file": place.file})
        if name:
            self.trajectory.meta["session"] = name
        self.trajectory.meta.update({k: v for k, v in meta.items() if v not in (None, "")})
        self._ids: set[str] = set()
        self._views: _Views | None = None

    def add(
        self,
        message: Message,
        *,
        sampled: bool = False,
        parent: str | None = "",
        line: int | None = None,
        time: float | None = None,
        node_id: str = "",
    ) -> Node:
        """`parent` '' is the last message, None starts a new context."""
        nodes = self.trajectory.nodes
        if not node_id or node_id in self._ids:
            node_id = f"{node_id or 'm'}.{len(nodes)}"
        if parent == "":
            parent = self.last
        source = (self.place.file, self.place.line if line is None else line)
        node = Node(id=node_id, parent=parent, message=message, sampled=sampled, time=time, source=source)
        self._ids.add(node_id)
        nodes.append(node)
        if self._views is not None:
            self._views.put(node)
        self.last = node_id
        return node

    def see(self, view: Sequence[Seen]) -> None:
        """Make `view` the context of what follows: nodes that hold its beginning are shared, the rest is copied.

        Messages are told apart by identity, so a view is made of the very `Message` objects that were added."""
        if self._views is None:
            self._views = _Views(self.trajectory.nodes)
        at: str | None = None
        for message, line in view:
            known = self._views.places.get((at, id(message)))
            if known is None:
                copy = message.origin is None and id(message) in self._views.stood
                node = self.add(replace(message, origin="copy") if copy else message, parent=at, line=line)
                known = self._views.places[at, id(message)] = node.id
            at = known
        self.last = at

    def new_context(self) -> None:
        """What follows was not seen together with what stands before."""
        self.last = None

    def subagent(self, root: Node, call_id: str | None, name: str = "") -> None:
        """`root` starts the context of an agent that `call_id` spawned."""
        link = {"root": root.id, "call_id": call_id, "name": name}
        self.trajectory.meta.setdefault("subagents", []).append({k: v for k, v in link.items() if v})

    def done(self) -> Trajectory:
        """Raises Bad when no message was found."""
        if not self.trajectory.nodes:
            raise Bad("no messages")
        if not any(n.message.role == "assistant" for n in self.trajectory.nodes):
            raise Bad("no assistant message")
        return self.trajectory


class Pairing:
    """Ids for calls and results where the format has none, or has one twice: results answer open calls in order."""

    def __init__(self) -> None:
        self.count = 0
        self.open: list[str] = []
        self.by_order = 0

    def called(self, call_id: str) -> str:
        """The id that the call gets: its own, unless another open call has it or it has none."""
        self.count += 1
        name = call_id or f"call_{self.count}"
        while name in self.open:
            name += "+"
        self.open.append(name)
        return name

    def new_id(self) -> str:
        return self.called("")

    def turn(self) -> None:
        """A new assistant turn: what is open stays unanswered."""
        self.open.clear()

    def answer(self, call_id: str | None = None) -> str | None:
        """The call that a result answers: the first open one of its id, else its own word; without one, the oldest."""
        if call_id:
            if call_id in self.open:  # nearly always
                self.open.remove(call_id)
                return call_id
            name = next((c for c in self.open if c.rstrip("+") == call_id.rstrip("+")), None)
            if name:
                self.open.remove(name)
            return name or call_id
        self.by_order += 1
        return self.open.pop(0) if self.open else None


def text_of(content: Any, place: Place) -> str:
    """Plain text of a string, a list of text blocks or nothing; other blocks are counted."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    out = []
    for block in content:
        if isinstance(block, str):
            out.append(block)
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            out.append(block["text"])
        else:
            place.block(f"unknown text block {kind_of(block)}")
    return "".join(out)


def obj(value: Any) -> dict[str, Any]:
    """`value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def kind_of(block: Any) -> str:
    return str(block.get("type", "without type")) if isinstance(block, dict) else type(block).__name__


_written = json.JSONEncoder(ensure_ascii=False).encode


def call(call_id: Any, name: Any, arguments: Any) -> Call:
    """A call whose arguments are a JSON string, as written, or an object, then written out."""
    name = str(name or "")
    if isinstance(arguments, str):
        return Call(id=str(call_id or ""), name=name, arguments=parsed(arguments), raw=arguments)
    arguments = {} if arguments is None else arguments
    raw = _written(arguments)
    return Call(id=str(call_id or ""), name=name, arguments=arguments if isinstance(arguments, dict) else None, raw=raw)


def parsed(raw: str) -> dict[str, Any] | None:
    """None when it is no JSON object; nothing at all is an empty one."""
    if not raw.strip():
        return {}
    try:
        value = quick(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def thinking(text: Any, *, hidden: bool = False) -> Thinking:
    text = text if isinstance(text, str) else ""
    return Thinking(text=text, hidden=hidden or not text)


def words(text: Any) -> tuple[Part, ...]:
    return (Text(text=text),) if isinstance(text, str) and text else ()


def result(call_id: Any, text: str, *, role: Any = "tool", parts: tuple[Part, ...] = (), **kw: Any) -> Message:
    """What came back; an empty text is a result as well."""
    named = None if call_id is None else str(call_id)  # a foreign id may be of any kind
    return Message(role=role, parts=parts or (Text(text=text),), call_id=named, **kw)


def moment(value: Any) -> float | None:
    """Unix seconds of an ISO time, of seconds or of milliseconds."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value / 1000 if value > 1e11 else float(value)
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def tools_of(value: Any, place: Place) -> list[dict[str, Any]]:
    """Tool schemas from a list or its JSON text; Anthropic's `input_schema` form becomes a function."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else []
        except ValueError:
            place.block("tools are not JSON")
            return []
    out = []
    for tool in value if isinstance(value, list) else []:
        if isinstance(tool, str):
            tool = parsed(tool)
        if not isinstance(tool, dict):
            place.block("a tool is not an object")
        elif "function" in tool:
            out.append(tool)
        elif "name" in tool:
            schema = tool.get("parameters") or tool.get("input_schema") or {}
            function = {"name": tool["name"], "description": tool.get("description", ""), "parameters": schema}
            out.append({"type": "function", "function": function})
        else:
            place.block("a tool without a name")
    return out


def outcome(resolved: Any) -> Reward | None:
    """A reward from a data set's own verdict: true/false, or a number in [0, 1]."""
    if isinstance(resolved, str):
        low = resolved.strip().lower()
        resolved = {"true": True, "false": False}.get(low, low)
        try:
            resolved = float(resolved)
        except ValueError:
            return None
    if not isinstance(resolved, bool | int | float) or not 0 <= resolved <= 1:
        return None
    value = float(resolved)
    return Reward(value=value, verdict=Verdict.PASSED if value == 1 else Verdict.FAILED, mode="as recorded")
