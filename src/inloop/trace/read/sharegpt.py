"""ShareGPT: `conversations: [{from: system|human|gpt|tool|function_call|observation, value}]`, `tools` a string."""

from __future__ import annotations

import json
from typing import Any

from inloop.trace.read import chat
from inloop.trace.read.place import Place
from inloop.trace.trajectory import Trajectory

NAME = "sharegpt"
_COLUMNS = ("conversations", "conversation", "conversations_sharegpt")


def sniff(row: Any) -> bool:
    return isinstance(row, dict) and any(_is_mine(row.get(k)) for k in _COLUMNS)


def read(row: dict[str, Any], place: Place) -> Trajectory:
    turns = next(row[k] for k in _COLUMNS if _is_mine(row.get(k)))
    messages = [_message(t) if isinstance(t, dict) else t for t in turns]
    if isinstance(row.get("system"), str) and row["system"]:
        messages.insert(0, {"role": "system", "content": row["system"]})
    rest = {k: v for k, v in row.items() if k not in _COLUMNS}
    trajectory = chat.read({**rest, "messages": messages}, place)
    trajectory.meta["format"] = NAME
    return trajectory


def _is_mine(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "from" in value[0]


def _message(turn: dict[str, Any]) -> dict[str, Any]:
    role, value = turn.get("from"), turn.get("value")
    if role == "function_call":
        calls = _calls(value)
        return {
            "role": "assistant",
            "content": "" if calls else value,
            "tool_calls": calls,
            "weight": turn.get("weight"),
        }
    return {"role": role, "content": value, "weight": turn.get("weight")}


def _calls(value: Any) -> list[dict[str, Any]]:
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return []
    found = found if isinstance(found, list) else [found]
    return [{"function": f} for f in found if isinstance(f, dict) and "name" in f]
