from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inloop.errors import DataError
from inloop.report.ledger import Ledger, head
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Reward, StopReason, Verdict, message


def rollout(name: str, **kw: Any) -> Trajectory:
    said = (message("user", 'say ,"nodes":[ or {'), message("assistant", "x"))
    nodes = [Node(id=f"m{i}", parent=f"m{i - 1}" if i else None, message=m) for i, m in enumerate(said)]
    fields: dict[str, Any] = {"stop": StopReason.SUBMITTED, "counts": {"turns": 3}, **kw}
    reward = Reward(value=1.0, verdict=Verdict.PASSED, fraction=1.0)
    return Trajectory(id=name, nodes=nodes, task_id="t", reward=reward, **fields)


def test_rows_come_without_the_messages_and_the_rest_by_offset(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path)
    made = [
        rollout(f"r{i}", meta={"nodes": [1, {"nodes": []}], "x": ',"nodes":['}, diff='+,"nodes":[') for i in range(3)
    ]
    store.extend(made)
    ledger = Ledger(store.path, {"t": "operator"})
    assert ledger.refresh()
    assert [(e.id, e.kind, e.passed, e.turns, e.stop) for e in ledger.entries] == [
        (f"r{i}", "operator", True, 3, "submitted") for i in range(3)
    ]
    assert ledger.load("r1") == made[1]
    with pytest.raises(DataError, match="no rollout 'r9'"):
        ledger.load("r9")


def test_it_follows_a_ledger_that_grows_and_leaves_a_torn_line(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "trajectories.jsonl")
    assert ledger.refresh() and not ledger.entries
    store = TrajectoryStore(tmp_path)
    store.append(rollout("r0"))
    line = json.dumps(rollout("r1").to_dict())
    with store.path.open("a") as out:
        out.write(line[:50])
    ledger.refresh()
    assert [e.id for e in ledger.entries] == ["r0"]
    with store.path.open("a") as out:
        out.write(line[50:] + "\n" + "garbage\n" + '{"id": 7}\n' + line + "\n")
    ledger.refresh()
    assert [e.id for e in ledger.entries] == ["r0", "r1"] and ledger.skipped == 3
    store.path.write_text(line + "\n")  # written anew
    ledger.refresh()
    assert [e.id for e in ledger.entries] == ["r1"]


def test_a_limit_of_time_reads_on_where_it_stopped(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path)
    store.extend([rollout(f"r{i}") for i in range(200)])
    ledger = Ledger(store.path)
    rounds = 0
    while not ledger.refresh(seconds=0.0):
        rounds += 1
    assert rounds >= 3 and [e.id for e in ledger.entries] == [f"r{i}" for i in range(200)]


def test_the_head_of_a_line_in_another_order_is_read_whole() -> None:
    assert head(b'{"nodes":[],"id":"x"}')["id"] == "x"
    assert head(b'{"id":"x","meta":{"a":1,"nodes":[2]},"nodes":[]}')["meta"]["nodes"] == [2]
