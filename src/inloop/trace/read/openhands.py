"""OpenHands: V0 event lists (turns rebuilt from the model's responses), V1 conversations of event files.

V0's `message` is text for the screen. V1 groups actions by `llm_response_id`; a condensation starts a new context."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inloop.trace.jsonl import loads
from inloop.trace.read.build import (
    Forest,
    Seen,
    call,
    kind_of,
    moment,
    obj,
    outcome,
    result,
    text_of,
    thinking,
    tools_of,
)
from inloop.trace.read.messages import parts_of
from inloop.trace.read.place import SHAPES, Bad, Place, why
from inloop.trace.read.talk import Talk
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Message, Part, Text

NAME = "openhands"
_HIDDEN = {"agent_state_changed", "null", "recall", "change_agent_state", "condensation", "think", "loop_recovery"}
"""V0 events without a part in the conversation, unless a call stands behind them."""


def sniff(row: Any) -> bool:
    events = row if isinstance(row, list) else obj(row).get("history")
    return isinstance(events, list) and any(_is_event(e) for e in events[:3])


def _is_event(event: Any) -> bool:
    return isinstance(event, dict) and "source" in event and ("action" in event or "observation" in event)


def read(row: Any, place: Place) -> Trajectory:
    """A V0 event list, or an evaluation row with it as `history`."""
    events = row if isinstance(row, list) else row["history"]
    row = obj(row)
    talk = Talk(NAME, place, name=str(row.get("instance_id") or ""))
    turns = _V0(talk)
    for event in events:
        if not isinstance(event, dict):
            raise Bad(f"an event is a {kind_of(event)}")
        turns.take(event)
    trajectory = talk.done()
    trajectory.agent = {"name": NAME, "version": str(obj(row.get("metadata")).get("agent_class") or "")}
    trajectory.model = turns.model
    trajectory.tools = tools_of(turns.tools, place)
    trajectory.task_id = row["instance_id"] if isinstance(row.get("instance_id"), str) else None
    patch = obj(row.get("test_result")).get("git_patch")
    trajectory.diff = patch if isinstance(patch, str) and patch else None
    trajectory.reward = outcome(obj(obj(row.get("test_result")).get("report")).get("resolved"))
    return trajectory


class _V0:
    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.seen: set[str] = set()
        self.call_of: dict[Any, str] = {}
        """id of an action -> its call."""
        self.answered: set[str] = set()
        self.model: str | None = None
        self.tools: Any = None

    def take(self, event: dict[str, Any]) -> None:
        time = moment(event.get("timestamp"))
        metadata = obj(event.get("tool_call_metadata"))
        if "action" in event:
            self._action(event, metadata, time)
        elif "observation" in event:
            self._observation(event, metadata, time)
        else:
            self.talk.place.block("an event that is neither action nor observation")

    def _action(self, event: dict[str, Any], metadata: dict[str, Any], time: float | None) -> None:
        response = obj(metadata.get("model_response"))
        if response:
            self.call_of[event.get("id")] = str(metadata.get("tool_call_id") or "")
            self._turn(response, time)
            return
        arguments, kind = obj(event.get("args")), event.get("action")
        content = arguments.get("content")
        if kind == "system":
            self.tools = arguments.get("tools")
            self.talk.hear({"role": "system", "content": content}, time=time)
        elif kind == "message":
            self.talk.hear(
                {"role": "user" if event.get("source") == "user" else "assistant", "content": content}, time=time
            )
        elif event.get("source") == "agent" and kind not in _HIDDEN:
            self._bare(str(kind), arguments, event, time)
        elif kind not in _HIDDEN:
            self.talk.place.block(f"action {kind} of {event.get('source')}")

    def _bare(self, kind: str, arguments: dict[str, Any], event: dict[str, Any], time: float | None) -> None:
        """An action without a response behind it: older agents, and the closing `finish`."""
        thought = arguments.get("final_thought") or arguments.get("thought") or ""
        if kind == "finish":
            self.talk.hear(
                {"role": "assistant", "content": thought or text_of(arguments.get("outputs"), self.talk.place)},
                time=time,
            )
            return
        rest = {k: v for k, v in arguments.items() if k != "thought"}
        made = {"id": f"event_{event.get('id')}", "function": {"name": kind, "arguments": rest}}
        self.call_of[event.get("id")] = f"event_{event.get('id')}"
        self.talk.hear({"role": "assistant", "content": thought, "tool_calls": [made]}, time=time)

    def _turn(self, response: dict[str, Any], time: float | None) -> None:
        own = str(response.get("id") or "")
        if own and own in self.seen:
            return
        self.seen.add(own)
        self.model = response["model"] if isinstance(response.get("model"), str) else self.model
        choices = response.get("choices")
        message = obj(obj(choices[0] if isinstance(choices, list) and choices else None).get("message"))
        if not message:
            raise Bad("a model response without a message")
        self.talk.hear({**message, "role": "assistant"}, time=time)

    def _observation(self, event: dict[str, Any], metadata: dict[str, Any], time: float | None) -> None:
        call_id = str(metadata.get("tool_call_id") or "") or self.call_of.get(event.get("cause"))
        content, kind = event.get("content"), event.get("observation")
        if not call_id:
            if kind not in _HIDDEN and content:
                self.talk.hear({"role": "user", "content": content, "origin": "harness"}, time=time)
            return
        if call_id in self.answered:
            self.talk.place.block("a second observation of one call")
            return
        self.answered.add(call_id)
        failed = kind == "error" or event.get("success") is False
        self.talk.hear({"role": "tool", "tool_call_id": call_id, "content": content, "is_error": failed}, time=time)


def is_conversation(folder: Path) -> bool:
    return (folder / "events").is_dir() and any((folder / "events").glob("event-*.json"))


def read_conversation(folder: Path, place: Place) -> Iterator[tuple[Trajectory | None, Place]]:
    """A V1 conversation folder, read as raw JSON; the line of a node is the number of its event file."""
    forest = Forest(NAME, place)
    events = _V1(forest)
    for number, path in enumerate(sorted((folder / "events").glob("event-*.json")), 1):
        here = place.at(number)
        try:
            event = loads(path.read_bytes())
            events.take(obj(event), here)
        except (OSError, *SHAPES) as error:
            here.skip(f"{path.name}: {why(error)}", kind="event")
    try:
        events.close()
        trajectory = forest.done()
    except SHAPES as error:
        place.skip(why(error), kind="session")
        yield None, place
        return
    _base_state(folder / "base_state.json", trajectory, place)
    trajectory.tools = trajectory.tools or tools_of(events.tools, place)
    yield trajectory, place


def _base_state(path: Path, trajectory: Trajectory, place: Place) -> None:
    trajectory.agent = {"name": NAME, "version": "1"}
    if not path.is_file():
        return
    try:
        state = obj(loads(path.read_bytes()))
    except (OSError, ValueError) as error:
        place.skip(f"{path.name}: {error}", kind="file")
        return
    trajectory.meta["session"] = str(state.get("id") or "")
    model = obj(obj(state.get("agent")).get("llm")).get("model")
    trajectory.model = model if isinstance(model, str) else None


class _V1:
    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.view: list[tuple[str, Seen]] = []
        """(event id, message) of the current context."""
        self.open: tuple[str, list[Part], list[str], float | None, int] | None = None
        """The response whose actions are being collected: id, parts, event ids, time, line."""
        self.waiting: list[tuple[str, Message, float | None, int]] = []
        self.tools: list[Any] = []

    def take(self, event: dict[str, Any], place: Place) -> None:
        kind, own, time = event.get("kind"), str(event.get("id") or ""), moment(event.get("timestamp"))
        if kind == "ActionEvent":
            self._action(event, own, time, place)
            return
        if kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
            self._answer(event, own, time, place)
            return
        self.close()
        if kind == "MessageEvent":
            self._message(obj(event.get("llm_message")), event, own, time, place)
        elif kind == "SystemPromptEvent":
            self.tools = event.get("tools") or []
            prompt = event.get("system_prompt")
            self._add(own, Message(role="system", parts=tuple(parts_of(prompt, place))), time, place.line)
        elif kind == "Condensation":
            self._condense(event, place)
        elif kind not in ("PauseEvent", "ConversationStateUpdateEvent", "CondensationRequest", "TokenEvent"):
            raise Bad(f"unknown record {kind}")

    def _action(self, event: dict[str, Any], own: str, time: float | None, place: Place) -> None:
        response = str(event.get("llm_response_id") or own)
        if self.open is None or self.open[0] != response:
            self.close()
            self.open = (response, [], [], time, place.line)
        parts, ids = self.open[1], self.open[2]
        ids.append(own)
        if event.get("reasoning_content"):
            parts.append(thinking(event["reasoning_content"]))
        elif event.get("thinking_blocks"):
            parts += parts_of(event["thinking_blocks"], place)
        parts += parts_of(event.get("thought"), place)
        made = obj(event.get("tool_call"))
        if not made:
            made = {"id": event.get("tool_call_id"), "name": event.get("tool_name"), "arguments": event.get("action")}
        parts.append(call(made.get("id"), made.get("name") or obj(made.get("function")).get("name"), _arguments(made)))

    def _answer(self, event: dict[str, Any], own: str, time: float | None, place: Place) -> None:
        seen = obj(event.get("observation"))
        failed = event["kind"] != "ObservationEvent" or bool(seen.get("is_error"))
        content = seen.get("content") if seen else event.get("error") or event.get("rejection_reason")
        parts = tuple(parts_of(content, place)) or (Text(text=""),)
        call_id = event.get("tool_call_id")
        answer = result(str(call_id) if call_id else None, "", parts=parts, is_error=failed)
        self.waiting.append((own, answer, time, place.line))

    def _message(
        self, inner: dict[str, Any], event: dict[str, Any], own: str, time: float | None, place: Place
    ) -> None:
        mine = inner.get("role") == "assistant" or event.get("source") == "agent"
        parts = [thinking(inner["reasoning_content"])] if inner.get("reasoning_content") else []
        said = Message(role="assistant" if mine else "user", parts=(*parts, *parts_of(inner.get("content"), place)))
        self._add(own, said, time, place.line, sampled=mine)

    def close(self) -> None:
        """End the response that is being collected; its results follow it."""
        if self.open is not None:
            _, parts, ids, time, line = self.open
            self._add(ids[0], Message(role="assistant", parts=tuple(parts)), time, line, sampled=True)
            self.open = None
        for own, answer, time, line in self.waiting:
            self._add(own, answer, time, line)
        self.waiting = []

    def _add(self, own: str, message: Message, time: float | None, line: int, **kw: Any) -> Node:
        self.view.append((own, (message, line)))
        return self.forest.add(message, time=time, line=line, **kw)

    def _condense(self, event: dict[str, Any], place: Place) -> None:
        forgotten = set(event.get("forgotten_event_ids") or ())
        self.view = [seen for seen in self.view if seen[0] not in forgotten]
        if isinstance(event.get("summary"), str) and event["summary"]:
            offset = event.get("summary_offset")
            summary = Message(role="user", parts=(Text(text=event["summary"]),), origin="compaction")
            at = offset if isinstance(offset, int) else len(self.view)
            self.view.insert(at, (str(event.get("id")), (summary, place.line)))
        self.forest.see([seen for _, seen in self.view])


def _arguments(made: dict[str, Any]) -> Any:
    return made["arguments"] if "arguments" in made else obj(made.get("function")).get("arguments")
