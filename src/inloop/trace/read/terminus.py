"""Terminus-2: the assistant writes JSON `{analysis, plan, commands: [{keystrokes, duration}]}`.

Rows of one trial repeat its earlier episodes; those turns count as copies when their episode was read before."""

from __future__ import annotations

import json
from typing import Any

from inloop.trace.read.build import outcome, tools_of
from inloop.trace.read.place import Bad, Place
from inloop.trace.read.tagged import Action
from inloop.trace.read.talk import Talk
from inloop.trace.trajectory import Trajectory

NAME = "terminus-2"
_DECODER = json.JSONDecoder()


def sniff(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    if _is_response(row) or row.get("agent") == "terminus-2":
        return True
    turns = row.get("conversations")
    return isinstance(turns, list) and any(_acts(t) for t in turns[:6])


def _is_response(row: dict[str, Any]) -> bool:
    return {"analysis", "plan", "commands"} <= set(row) and isinstance(row["commands"], list)


def _acts(turn: Any) -> bool:
    if not isinstance(turn, dict) or turn.get("role") != "assistant" or not isinstance(turn.get("content"), str):
        return False
    return '"commands"' in turn["content"] and '"keystrokes"' in turn["content"]


def read(row: dict[str, Any], place: Place) -> Trajectory:
    turns = row.get("conversations")
    if _is_response(row):
        turns = [{"role": "assistant", "content": json.dumps(row, ensure_ascii=False, indent=2)}]
    if not isinstance(turns, list) or not turns:
        raise Bad("no messages")
    name = str(row.get("trial_name") or row.get("run_id") or "")
    talk = Talk(NAME, place, actions=commands, name=name, episode=row.get("episode"), licence=row.get("license"))
    talk.feed(turns)
    trajectory = talk.done()
    trajectory.model = row["model"] if isinstance(row.get("model"), str) else None
    trajectory.task_id = row["task"] if isinstance(row.get("task"), str) else None
    trajectory.agent = {"name": str(row.get("agent") or NAME)}
    trajectory.reward = outcome(row.get("result"))
    trajectory.tools = tools_of(row.get("tool_definitions"), place)
    trajectory.meta["episodes"] = True
    return trajectory


def commands(text: str) -> list[Action]:
    """Where each command object stands; text around the JSON is tolerated, as the harness does."""
    key = text.find('"commands"')
    start = text.find("[", key)
    if key < 0 or start < 0:
        return []
    out: list[Action] = []
    at = start + 1
    while (begin := _next(text, at)) >= 0:
        try:
            value, at = _DECODER.raw_decode(text, begin)
        except ValueError:
            break
        if isinstance(value, dict):
            out.append(Action(begin, at, "keystrokes", value))
    return out


def _next(text: str, at: int) -> int:
    """The start of the next object of the array, -1 at its end."""
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at if at < len(text) and text[at] == "{" else -1
