"""mini-swe-agent: v1 acts in fenced blocks, v2 in tool calls, or with the response objects of the Responses API."""

from __future__ import annotations

from typing import Any

from inloop.trace.read.build import kind_of, moment, obj, result
from inloop.trace.read.items import OUTPUTS, item_parts, output_text
from inloop.trace.read.messages import with_ids
from inloop.trace.read.place import Bad, Place
from inloop.trace.read.tagged import fenced_actions
from inloop.trace.read.talk import Talk
from inloop.trace.trajectory import Trajectory
from inloop.types import Message, Part

NAME = "mini-swe-agent"


def sniff(row: Any) -> bool:
    if isinstance(row, list):  # before v1.1 the file was the bare list of messages
        return any(_is_observation(m) for m in row[:8])
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list):
        return False
    info = row.get("info")
    return "mini-swe-agent" in str(row.get("trajectory_format", "")) or (
        isinstance(info, dict) and "mini_version" in info
    )


def _is_observation(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") != "user" or not isinstance(message.get("content"), str):
        return False
    return str(message["content"]).lstrip().startswith("<returncode>")


def read(row: Any, place: Place) -> Trajectory:
    if isinstance(row, list):
        row = {"messages": row}
    info = row["info"] if isinstance(row.get("info"), dict) else {}
    talk = Talk(
        NAME, place, actions=fenced_actions, name=str(row.get("instance_id") or ""), exit=info.get("exit_status")
    )
    for message in _seen(row["messages"], info):
        _hear(talk, message)
    trajectory = talk.done()
    trajectory.task_id = row["instance_id"] if isinstance(row.get("instance_id"), str) else None
    trajectory.agent = {"name": NAME, "version": str(info.get("mini_version") or "")}
    trajectory.model = _model(info)
    submission = info.get("submission")
    trajectory.diff = submission if isinstance(submission, str) and submission else None
    return trajectory


def _seen(messages: list[Any], info: dict[str, Any]) -> list[Any]:
    """Without the closing message, which says why the run ended and which no model saw."""
    last = messages[-1] if messages else None
    if isinstance(last, dict) and last.get("role") == "exit":
        return messages[:-1]
    told = isinstance(last, dict) and last.get("role") == "user" and "exit_status" in info
    return messages[:-1] if told and obj(last).get("content") == info.get("submission") else messages


def _hear(talk: Talk, message: Any) -> None:
    if not isinstance(message, dict):
        raise Bad(f"a message is a {kind_of(message)}")
    extra = obj(message.get("extra"))
    time = moment(message.get("timestamp") or extra.get("timestamp"))
    if message.get("object") == "response":
        _response(talk, message, time)
    elif message.get("type") in OUTPUTS:
        text, failed = output_text(message, talk.place)
        failed = failed or bool(extra.get("exception_info"))
        talk.add(result(talk.pairing.answer(message.get("call_id")), text, is_error=failed), time=time)
    else:
        if message.get("role") == "user" and (extra.get("response") or extra.get("model_response")):
            talk.place.block("a refused response that the history does not hold")
        error = bool(extra.get("exception_info")) and message.get("role") == "tool"
        talk.hear({**message, "is_error": error}, time=time)


def _response(talk: Talk, response: dict[str, Any], time: float | None) -> None:
    talk.pairing.turn()
    parts: list[Part] = []
    for item in response.get("output") or ():
        parts += item_parts(item, talk.place) if isinstance(item, dict) else []
    said = Message(role="assistant", parts=with_ids(tuple(parts), talk.pairing.called))
    talk.add(said, sampled=True, time=time)


def _model(info: dict[str, Any]) -> str | None:
    name = obj(obj(info.get("config")).get("model")).get("model_name")
    return name if isinstance(name, str) else None
