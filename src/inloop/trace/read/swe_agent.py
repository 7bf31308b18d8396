"""SWE-agent `.traj`, and Nebius' rows of SWE-agent runs.

`history` holds the turns, `query` of a step what the model really saw: history processors elide old output."""

from __future__ import annotations

import json
from typing import Any

from inloop.trace.jsonl import dump
from inloop.trace.read.build import Seen, outcome
from inloop.trace.read.place import Bad, Place
from inloop.trace.read.tagged import last_fenced_action
from inloop.trace.read.talk import Talk
from inloop.trace.trajectory import Trajectory, message_to_dict
from inloop.types import Message

NAME = "swe-agent"


def sniff(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    steps = row.get("trajectory")
    if isinstance(row.get("history"), list) and isinstance(steps, list):
        return True
    return isinstance(steps, list) and bool(steps) and isinstance(steps[0], dict) and {"role", "text"} <= set(steps[0])


def read(row: dict[str, Any], place: Place) -> Trajectory:
    return _traj(row, place) if isinstance(row.get("history"), list) else _nebius(row, place)


def _traj(row: dict[str, Any], place: Place) -> Trajectory:
    info = row["info"] if isinstance(row.get("info"), dict) else {}
    history = [_mended(m) for m in row["history"]]
    talk = _Talk(NAME, place, actions=last_fenced_action, exit=info.get("exit_status"))
    queries = _queries(row["trajectory"], history)
    if queries:
        _as_seen(talk, history, queries)
    else:
        talk.feed(history)
    trajectory = talk.done()
    trajectory.task_id = str(row.get("instance_id") or "") or None
    trajectory.agent = {"name": NAME, "version": str(info.get("swe_agent_version") or "")}
    submission = info.get("submission")
    trajectory.diff = submission if isinstance(submission, str) and submission else None
    return trajectory


class _Talk(Talk):
    """A talk that can be set back to a context that it has seen."""

    def understood(self, messages: list[Any]) -> list[Seen]:
        """Messages of a context as the very objects that were added, where they say the same."""
        apart = Talk(NAME, self.place, actions=self.actions)
        apart.feed(messages)
        known = {dump(message_to_dict(n.message)): n.message for n in self.trajectory.nodes}
        return [(_same(known, n.message), self.place.line) for n in apart.trajectory.nodes]


def _same(known: dict[bytes, Message], message: Message) -> Message:
    return known.get(dump(message_to_dict(message)), message)


def _as_seen(talk: _Talk, history: list[Any], queries: list[list[Any]]) -> None:
    """Each turn after the context that it was sampled in, then what came after the last one."""
    turns = [i for i, m in enumerate(history) if _is_turn(m)]
    for at, query in zip(turns, queries, strict=True):
        talk.see(talk.understood(query))
        talk.hear(history[at])
    talk.feed(history[turns[-1] + 1 :])


def _queries(steps: list[Any], history: list[Any]) -> list[list[Any]]:
    """The contexts of the turns, or nothing when they can't be told (before 1.1) or are the history itself."""
    queries = [s.get("query") for s in steps if isinstance(s, dict)]
    turns = [i for i, m in enumerate(history) if _is_turn(m)]
    if not turns or len(queries) != len(turns) or not all(isinstance(q, list) and q for q in queries):
        return []
    mended = [[_mended(m) for m in q or ()] for q in queries]
    if all(_plain(query) == _plain(history[:at]) for query, at in zip(mended, turns, strict=True)):
        return []
    return mended


def _plain(messages: list[Any]) -> list[tuple[Any, Any]]:
    return [(m.get("role"), m.get("content")) for m in messages]


def _is_turn(message: dict[str, Any]) -> bool:
    return message.get("role") == "assistant" and not message.get("is_demo")


def _mended(message: Any) -> dict[str, Any]:
    """Old files keep `tool_calls` and `tool_call_ids` as JSON text."""
    if not isinstance(message, dict):
        raise Bad("a history entry is not an object")
    out = dict(message)
    for key in ("tool_calls", "tool_call_ids"):
        if isinstance(out.get(key), str):
            try:
                out[key] = json.loads(out[key])
            except ValueError:
                raise Bad(f"{key} is not JSON") from None
    if message.get("thinking_blocks") and isinstance(out.get("content"), str):
        out["content"] = [*message["thinking_blocks"], {"type": "text", "text": out["content"]}]
    return out


def _nebius(row: dict[str, Any], place: Place) -> Trajectory:
    name = str(row.get("instance_id") or "")
    talk = Talk(NAME, place, actions=last_fenced_action, exit=row.get("exit_status"))
    for step in row["trajectory"]:
        if not isinstance(step, dict):
            raise Bad("a step is not an object")
        text = step.get("text") or step.get("system_prompt") or ""
        masked = {"mask": False} if step.get("mask") is True else {}
        talk.hear({"role": step.get("role"), "content": text, **masked})
    trajectory = talk.done()
    trajectory.task_id = name or None
    trajectory.model = row["model_name"] if isinstance(row.get("model_name"), str) else None
    trajectory.agent = {"name": NAME}
    trajectory.reward = outcome(row.get("target"))
    patch = row.get("generated_patch")
    trajectory.diff = patch if isinstance(patch, str) and patch else None
    return trajectory
