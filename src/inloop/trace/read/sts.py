"""Hugging Face session traces: `{type: session, harness, id}`, then `{type: message, message: {...}}` lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inloop.trace.read.build import obj
from inloop.trace.read.place import Bad, Place
from inloop.trace.read.talk import Talk
from inloop.trace.trajectory import Trajectory

NAME = "hf-sts"


class Reader:
    name = NAME

    def __init__(self) -> None:
        self._talks: list[Talk] = []

    def owns(self, record: dict[str, Any]) -> bool:
        if record.get("type") == "session":
            return "harness" in record
        inner = obj(record.get("message"))
        return (
            record.get("type") == "message" and "role" in inner and "parentId" not in record and "payload" not in record
        )

    def feed(self, record: dict[str, Any], place: Place) -> str:
        if record.get("type") == "session":
            talk = Talk(NAME, place, name=str(record.get("id") or ""), title=record.get("name"))
            talk.trajectory.agent = {"name": str(record.get("harness") or "")}
            self._talks.append(talk)
            return "session"
        if not self._talks:
            self._talks.append(Talk(NAME, place))
        talk = self._talks[-1]
        inner = record["message"]
        if record.get("type") != "message":
            raise Bad(f"unknown record {record.get('type')}")
        talk.place = place
        talk.hear(inner)
        if isinstance(inner.get("model"), str):
            talk.trajectory.model = inner["model"]
        return ""

    def flush(self) -> Iterator[tuple[Trajectory | None, Place]]:
        while len(self._talks) > 1:
            yield _close(self._talks.pop(0))

    def finish(self) -> Iterator[tuple[Trajectory | None, Place]]:
        while self._talks:
            yield _close(self._talks.pop(0))


def _close(talk: Talk) -> tuple[Trajectory | None, Place]:
    place = talk.place.at(0)
    try:
        trajectory = talk.done()
    except Bad as reason:
        place.skip(str(reason), kind="session")
        return None, place
    missing = [] if any(n.message.role == "system" for n in trajectory.nodes) else ["system prompt"]
    trajectory.meta["missing"] = [*missing, *([] if trajectory.tools else ["tools"])]
    return trajectory, place
