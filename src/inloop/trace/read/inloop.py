"""Our own `trajectories.jsonl`: ledgers are merged by importing them."""

from __future__ import annotations

from typing import Any

from inloop.trace.read.place import Bad, Place
from inloop.trace.trajectory import Trajectory

NAME = "inloop"


def sniff(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("nodes"), list) and "id" in row and "format" in row


def read(row: dict[str, Any], place: Place) -> Trajectory:
    try:
        trajectory = Trajectory.from_dict(row)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Bad(f"not a trajectory: {type(error).__name__} {error}") from None
    if not trajectory.nodes:
        raise Bad("no messages")
    return trajectory
