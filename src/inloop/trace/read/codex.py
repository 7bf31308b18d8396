"""Codex CLI rollouts: `{timestamp, ordinal?, type, payload}` lines, trained from `response_item`.

`token_count` closes a model call. The newest compaction's `replacement_history` is the context from then on. Forks
and sub-agents may begin with a copy of their parent's lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from inloop.trace.read.build import Forest, moment, obj, result, text_of
from inloop.trace.read.items import CALLS, HOSTED, OUTPUTS, item_parts, output_text
from inloop.trace.read.messages import parts_of
from inloop.trace.read.place import Bad, Place
from inloop.trace.trajectory import Trajectory
from inloop.types import Message, Part, Role, Text, message

NAME = "codex"
_TYPES = {"session_meta", "turn_context", "response_item", "event_msg", "compacted"}
_QUIET = {"world_state", "inter_agent_communication", "token_usage_record", "retained_context", "ghost_snapshot"}
_ITEMS = {"message", "reasoning", *CALLS, *OUTPUTS, *HOSTED}
_HARNESS = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md", "<permissions", "<turn_aborted>", "<INSTRUCTIONS>",
    "<subagent_notification>", "<skill>", "<user_shell_command>",
)  # fmt: skip


@dataclass(slots=True)
class _Thread:
    """One thread under construction. A model call is collected until its border is known."""

    forest: Forest
    place: Place
    own_from: int = 0
    """Lines with a lower ordinal are a copy of the parent's."""
    parts: list[Part] = field(default_factory=list)
    results: list[tuple[Message, int, float | None]] = field(default_factory=list)
    start: tuple[int, float | None] = (0, None)
    copied: bool = False
    users: list[str | None] = field(default_factory=list)
    """What stood before each of the person's messages, for a rollback."""
    lines: int = 0

    def close_call(self) -> None:
        """The model's own words of one call, then the results that came meanwhile."""
        if self.parts:
            line, time = self.start
            said = Message(role="assistant", parts=tuple(self.parts), origin="copy" if self.copied else None)
            self.forest.add(said, sampled=not self.copied, line=line, time=time)
        for answer, line, time in self.results:
            self.forest.add(answer, line=line, time=time)
        self.parts, self.results = [], []


class Reader:
    name = NAME

    def __init__(self) -> None:
        self._threads: dict[str, _Thread] = {}
        self._current = ""

    def owns(self, record: dict[str, Any]) -> bool:
        kind = record.get("type")
        if isinstance(record.get("payload"), dict) and isinstance(kind, str):
            return True
        # before 0.32 the items stood in the lines themselves
        return kind in _ITEMS and (
            "call_id" in record or "summary" in record or (kind == "message" and "role" in record)
        )

    def feed(self, record: dict[str, Any], place: Place) -> str:
        kind, payload = str(record.get("type")), obj(record.get("payload"))
        if "payload" not in record:
            kind, payload = "response_item", record
        if kind == "session_meta":
            return self._meta(payload, record, place)
        thread = self._thread(place)
        if kind == "turn_context":
            if isinstance(payload.get("model"), str):
                thread.forest.trajectory.model = payload["model"]
            return kind
        if kind == "response_item":
            return self._item(thread, payload, record, place)
        if kind == "compacted":
            self._compacted(thread, payload, place)
            return ""
        if kind == "event_msg":
            return self._event(thread, payload)
        if kind in _QUIET:
            return kind
        raise Bad(f"unknown record {kind}")

    def flush(self) -> Iterator[tuple[Trajectory | None, Place]]:
        yield from ()

    def finish(self) -> Iterator[tuple[Trajectory | None, Place]]:
        for thread in self._threads.values():
            thread.close_call()
            nodes = thread.forest.trajectory.nodes
            if not any(n.message.role == "assistant" for n in nodes):
                thread.place.skip("no assistant message", kind="session")
                yield None, thread.place
                continue
            thread.forest.trajectory.meta["missing"] = ["tools"]
            yield thread.forest.done(), thread.place
        self._threads = {}

    def _thread(self, place: Place) -> _Thread:
        if self._current not in self._threads:
            self._threads[self._current] = _Thread(Forest(NAME, place), place.at(0))
        return self._threads[self._current]

    def _meta(self, payload: dict[str, Any], record: dict[str, Any], place: Place) -> str:
        own = str(payload.get("id") or "")
        current = self._threads.get(self._current)
        if current is not None:
            forked = current.forest.trajectory.meta
            if own in self._threads:
                current.close_call()
                self._current = own
                return "session_meta"
            if own and own in (forked.get("forked_from"), forked.get("parent_session")):
                return "session_meta of the parent"
            current.close_call()
        spawn = obj(obj(obj(payload.get("source")).get("subagent")).get("thread_spawn"))
        meta = {
            "cwd": payload.get("cwd"),
            "forked_from": payload.get("forked_from_id"),
            "branch": obj(payload.get("git")).get("branch"),
        }
        meta |= {
            "commit": obj(payload.get("git")).get("commit_hash"),
            "parent_session": spawn.get("parent_thread_id"),
        }
        forest = Forest(NAME, place, name=own, **meta)
        forest.trajectory.agent = {"name": NAME, "version": str(payload.get("cli_version") or "")}
        start = payload.get("subagent_history_start_ordinal")
        self._current = own
        self._threads[own] = _Thread(forest, place.at(0), own_from=start if isinstance(start, int) else 0)
        text = text_of(obj(payload.get("base_instructions")).get("text") or payload.get("instructions"), place)
        if text:
            forest.add(message("system", text), line=place.line, time=moment(record.get("timestamp")))
        return "" if text else "session_meta"

    def _item(self, thread: _Thread, item: dict[str, Any], record: dict[str, Any], place: Place) -> str:
        kind, time = item.get("type"), moment(record.get("timestamp"))
        thread.lines += 1
        if kind in OUTPUTS:
            text, failed = output_text(item, place)
            call_id = item.get("call_id")
            thread.results.append((result(str(call_id) if call_id else None, text, is_error=failed), place.line, time))
            return ""
        if kind == "message" and item.get("role") != "assistant":
            thread.close_call()
            self._heard(thread, item, place, time)
            return ""
        if kind not in _ITEMS:
            raise Bad(f"unknown item {kind}")
        if thread.results and kind in ("message", "reasoning"):
            thread.close_call()  # words after a result are a new call, also where no token_count says so
        if not thread.parts:
            thread.start = (place.line, time)
            ordinal = record.get("ordinal")
            thread.copied = isinstance(ordinal, int) and ordinal < thread.own_from
        thread.parts += item_parts(item, place)
        return ""

    def _heard(self, thread: _Thread, item: dict[str, Any], place: Place, time: float | None) -> None:
        said = _outer(item, place)
        if said.role == "user" and said.origin is None:
            thread.users.append(thread.forest.last)
        thread.forest.add(said, line=place.line, time=time)

    def _compacted(self, thread: _Thread, payload: dict[str, Any], place: Place) -> None:
        thread.close_call()
        forest = thread.forest
        forest.new_context()
        thread.users = []
        history = payload.get("replacement_history")
        if not isinstance(history, list):
            forest.trajectory.meta["approximate_contexts"] = forest.trajectory.meta.get("approximate_contexts", 0) + 1
            forest.add(message("user", text_of(payload.get("message"), place), origin="compaction"), line=place.line)
            return
        base = next(
            (n.message for n in forest.trajectory.nodes if n.message.role == "system" and not n.message.origin), None
        )
        if base is not None:
            forest.add(base, line=place.line)
        for item in history:
            self._replaced(forest, obj(item), place)

    def _replaced(self, forest: Forest, item: dict[str, Any], place: Place) -> None:
        kind = item.get("type")
        if kind in OUTPUTS:
            text, failed = output_text(item, place)
            forest.add(result(str(item.get("call_id")), text, is_error=failed), line=place.line)
        elif kind == "message" and item.get("role") != "assistant":
            said = _outer(item, place)
            forest.add(said, line=place.line)
        elif kind in ("compaction", "compaction_summary"):
            text = text_of(item.get("summary") or item.get("text"), place)
            forest.add(message("user", text, origin="compaction"), line=place.line)
        else:
            parts = item_parts(item, place)
            if parts:
                forest.add(Message(role="assistant", parts=tuple(parts), origin="copy"), line=place.line)

    def _event(self, thread: _Thread, payload: dict[str, Any]) -> str:
        kind = str(payload.get("type"))
        if kind == "token_count" and payload.get("info"):
            thread.close_call()
        elif kind == "thread_rolled_back":
            thread.close_call()
            turns = payload.get("num_turns")
            dropped = thread.users[-turns:] if isinstance(turns, int) and turns > 0 else []
            if dropped:
                thread.forest.last = dropped[0]
                del thread.users[-len(dropped) :]
        return f"event {kind}"


def _outer(item: dict[str, Any], place: Place) -> Message:
    """A message that the model did not write: the person's, or the harness's in the person's name."""
    parts = parts_of(item.get("content"), place) or [Text(text="")]
    role: Role = "system" if item.get("role") in ("developer", "system") else "user"
    origin = "developer" if item.get("role") == "developer" else None
    if role == "user" and isinstance(parts[0], Text) and parts[0].text.lstrip().startswith(_HARNESS):
        origin = "harness"
    return Message(role=role, parts=tuple(parts), origin=origin)
