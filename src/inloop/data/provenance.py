"""Where a trajectory comes from, who wrote it, and under which terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from inloop.tasks.taskset import Taskset
from inloop.trace.trajectory import Trajectory


def source(trajectory: Trajectory) -> str:
    """What the trace says, the foreign format that it was in, or the run that sampled it."""
    run = str(trajectory.meta.get("run") or "rollouts").rstrip("/").rpartition("/")[2]
    return str(trajectory.meta.get("source") or trajectory.meta.get("format") or run)


def licence(trajectory: Trajectory) -> str:
    return str(trajectory.meta.get("licence") or "unknown")


def teacher(trajectory: Trajectory) -> str:
    return str(trajectory.meta.get("teacher") or trajectory.model or "unknown")


def from_tasks(trajectories: Iterable[Trajectory], tasksets: Sequence[Path]) -> Iterator[Trajectory]:
    """Note on each trajectory the licence and the source unit of its task, where the tasksets know them."""
    rows = {row.id: row for folder in tasksets for row in Taskset.open(folder).rows}
    for trajectory in trajectories:
        if row := rows.get(trajectory.task_id or ""):
            known = {"licence": str(row.provenance.get("licence") or ""), "unit": f"{row.repository}@{row.unit}"}
            trajectory.meta = {**{k: v for k, v in known.items() if v}, **trajectory.meta}
        yield trajectory
