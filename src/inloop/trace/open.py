"""Trajectories of whatever a person names: a ledger, a run folder, or any foreign trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from inloop.errors import DataError
from inloop.trace.check import Tokenizer
from inloop.trace.read.paths import read
from inloop.trace.skipped import Skipped
from inloop.trace.store import NAME, read_trajectories
from inloop.trace.trajectory import Trajectory


def open_traces(path: Path) -> tuple[Iterator[Trajectory], list[Skipped]]:
    """(trajectories, what was skipped). A run folder is its ledger. Raises DataError when there is nothing."""
    if path.is_dir() and (path / NAME).is_file():
        return read_trajectories(path)
    if path.name == NAME and path.is_file():
        return read_trajectories(path)
    found, skipped = read(path)
    return _named(found), skipped


def _named(trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
    """Foreign traces have no id before they are imported: their place in the file is one."""
    for number, trajectory in enumerate(trajectories, 1):
        trajectory.id = trajectory.id or f"{number}"
        yield trajectory


def pick(trajectories: Iterable[Trajectory], *, name: str | None, row: int) -> Trajectory:
    """The one with id `name`, else the one in `row` (1-based). Raises DataError."""
    seen = 0
    for seen, trajectory in enumerate(trajectories, 1):
        if trajectory.id == name or (name is None and seen == row):
            return trajectory
    wanted = f"no trajectory {name}" if name else f"no row {row}"
    raise DataError(f"{wanted} among {seen}", fix="`inloop traces stats` lists what is there")


def stats(trajectories: Iterable[Trajectory]) -> dict[str, Any]:
    """Totals, and how many have which format, model, stop reason and verdict."""
    totals: Counter[str] = Counter()
    by: dict[str, Counter[str]] = {k: Counter() for k in ("format", "agent", "model", "stop", "verdict", "missing")}
    for trajectory in trajectories:
        totals["trajectories"] += 1
        totals["messages"] += len(trajectory.nodes)
        totals["contexts"] += len(trajectory.leaves())
        totals["sampled_turns"] += sum(n.sampled for n in trajectory.nodes)
        totals["sampled_tokens"] += sum(len(n.token_ids or ()) for n in trajectory.nodes if n.sampled)
        totals["calls"] += sum(len(n.message.all_calls) for n in trajectory.nodes if n.message.origin != "copy")
        totals["results"] += sum(n.message.role == "tool" or bool(n.message.call_id) for n in trajectory.nodes)
        totals["redacted_spans"] += sum(len(n.untrained) for n in trajectory.nodes)
        by["format"][str(trajectory.meta.get("format", "inloop"))] += 1
        by["agent"][str(trajectory.agent.get("name") or "?")] += 1
        by["model"][trajectory.model or "?"] += 1
        by["stop"][trajectory.stop.value if trajectory.stop else "?"] += 1
        by["verdict"][trajectory.reward.verdict.value if trajectory.reward else "not scored"] += 1
        by["missing"].update(trajectory.meta.get("missing", ()))
    return {**totals, **{k: dict(v.most_common()) for k, v in by.items()}}


def load_tokenizer(path: Path | None) -> Tokenizer | None:
    """A `transformers` tokenizer from a local folder. Raises DataError."""
    if path is None:
        return None
    try:
        from transformers import AutoTokenizer

        tokenizer: Tokenizer = AutoTokenizer.from_pretrained(str(path), local_files_only=True)
    except (ImportError, OSError, ValueError) as error:
        raise DataError(f"no tokenizer in {path}: {error}", fix="name a folder with tokenizer.json in it") from None
    return tokenizer
