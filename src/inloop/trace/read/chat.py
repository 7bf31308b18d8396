"""Chat messages with tools: OpenAI's wire, TRL, and the column layouts of public data sets.

{"messages": [{role, content, tool_calls?, tool_call_id?, reasoning_content?}], "tools": [...]}; SWE-smith has the
messages as a JSON string, SWE-rebench and SWE-Zero name them `trajectory`, TRL also has prompt + completion."""

from __future__ import annotations

import json
from typing import Any

from inloop.trace.read import tagged
from inloop.trace.read.build import outcome, tools_of
from inloop.trace.read.place import Bad, Place
from inloop.trace.read.talk import Talk
from inloop.trace.trajectory import Trajectory

NAME = "chat"
_COLUMNS = ("messages", "trajectory", "conversations", "conversation")
_TASK = ("instance_id", "task_id", "task")
_OWN_ID = ("traj_id", "trajectory_id", "uuid", "id", "run_id")


def sniff(row: Any) -> bool:
    if isinstance(row, list):
        return bool(row) and isinstance(row[0], dict) and "role" in row[0]
    return isinstance(row, dict) and (_column(row) is not None or _is_prompt(row))


def read(row: Any, place: Place) -> Trajectory:
    if isinstance(row, list):
        row = {"messages": row}
    column = _column(row)
    if column is None:
        return _prompt_completion(row, place)
    messages = _messages(row[column])
    talk = Talk(NAME, place, actions=_actions(messages), name=_first(row, _OWN_ID), licence=row.get("license"))
    if not messages:
        raise Bad("no messages")
    talk.feed(messages)
    return _columns(talk.done(), row, place)


def _prompt_completion(row: dict[str, Any], place: Place) -> Trajectory:
    talk = Talk(NAME, place, name=_first(row, _OWN_ID))
    for message in row["prompt"]:
        talk.hear(message, **({"sampled": False} if message.get("role") == "assistant" else {}))
    talk.feed(row["completion"])
    return _columns(talk.done(), row, place)


def _columns(trajectory: Trajectory, row: dict[str, Any], place: Place) -> Trajectory:
    trajectory.tools = trajectory.tools or tools_of(row.get("tools") or row.get("functions"), place)
    trajectory.task_id = _first(row, _TASK) or None
    model = row.get("model") or row.get("model_name")
    trajectory.model = model if isinstance(model, str) else None
    trajectory.reward = outcome(row.get("resolved"))
    test = row.get("test_result")
    patch = test.get("git_patch") if isinstance(test, dict) else None
    patch = patch or row.get("model_patch") or row.get("patch")
    trajectory.diff = patch if isinstance(patch, str) and patch else None
    missing = [] if any(n.message.role == "system" for n in trajectory.nodes) else ["system prompt"]
    missing += [] if trajectory.tools else ["tools"]
    if missing:
        trajectory.meta["missing"] = missing
    return trajectory


def _column(row: dict[str, Any]) -> str | None:
    for key in _COLUMNS:
        value = row.get(key)
        if isinstance(value, str) and value.lstrip().startswith("[{"):
            return key
        if isinstance(value, list) and (not value or (isinstance(value[0], dict) and "role" in value[0])):
            return key
    return None


def _is_prompt(row: dict[str, Any]) -> bool:
    return all(
        isinstance(row.get(k), list) and row[k] and isinstance(row[k][0], dict) and "role" in row[k][0]
        for k in ("prompt", "completion")
    )


def _messages(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise Bad(f"the messages are not JSON: {error}") from None
    if not isinstance(value, list):
        raise Bad("the messages are not a list")
    return value


def _actions(messages: list[Any]) -> tagged.Actions | None:
    """A chat whose assistant writes `<function=...>` and has no native calls is a text harness."""
    for message in messages:
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        if message.get("tool_calls"):
            return None
        content = message.get("content")
        if isinstance(content, str) and "<function=" in content and "<tool_call>" not in content:
            return tagged.function_actions
    return None


def _first(row: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(row[k]) for k in keys if isinstance(row.get(k), str | int) and row[k] != ""), "")
