"""The ledger: exactly once, whole lines, whatever dies and whoever else writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from inloop.trace.store import TrajectoryStore, read_trajectories
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Message, Reward, StopReason, Text, Thinking, Verdict, message


def trajectory(rollout_id: str, words: str = "hello") -> Trajectory:
    reply = Message(
        role="assistant",
        parts=(Thinking(text="hm"), Text(text="é\u2028"), Call(id="c", name="bash", arguments=None, raw='{"a')),
    )
    return Trajectory(
        id=rollout_id,
        nodes=[
            Node(id="a", parent=None, message=message("user", words)),
            Node(
                id="b", parent="a", message=reply, sampled=True, token_ids=[], logprobs=[], weight_version=0,
                untrained=[(0, 1)], source=("f", 3), time=1.5,
            ),
        ],
        reward=Reward(value=None, verdict=Verdict.FAULT),
        stop=StopReason.DEADLINE,
    )  # fmt: skip


def ids(path: Path) -> list[str]:
    return [t.id for t in read_trajectories(path)[0]]


def test_a_trajectory_survives_the_file(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path)
    assert store.append(trajectory("r1"))
    back = next(iter(store))
    assert back == trajectory("r1")


def test_each_id_once(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path / "run" / "trajectories.jsonl")
    assert store.append(trajectory("r1"))
    assert not store.append(trajectory("r1", "other words"))
    assert not TrajectoryStore(tmp_path / "run").append(trajectory("r1"))
    assert ids(tmp_path / "run") == ["r1"]
    assert "r1" in store and len(store) == 1


def test_same_content_is_refused_only_when_asked(tmp_path: Path) -> None:
    plain, strict = TrajectoryStore(tmp_path / "a"), TrajectoryStore(tmp_path / "b", dedupe=True)
    assert plain.append(trajectory("r1")) and plain.append(trajectory("r2"))
    assert strict.append(trajectory("r1")) and not strict.append(trajectory("r2"))
    assert strict.duplicate_of(trajectory("r3")) == "r1"
    assert strict.append(trajectory("r2", "other words"))


def test_a_torn_tail_costs_its_line(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path)
    store.extend([trajectory("r1"), trajectory("r2")])
    path = tmp_path / "trajectories.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    found, skipped = read_trajectories(tmp_path)
    assert [t.id for t in found] == ["r1"]
    assert [(s.line, s.reason) for s in skipped] == [(2, "torn tail")]
    again = TrajectoryStore(tmp_path)
    assert again.append(trajectory("r2")) and again.append(trajectory("r3"))
    found, skipped = read_trajectories(tmp_path)
    assert [t.id for t in found] == ["r1", "r2", "r3"]
    assert [s.line for s in skipped] == [2]


@pytest.mark.parametrize("harm", ["missing", "torn", "garbage", "other ledger"])
def test_the_index_is_only_a_cache(tmp_path: Path, harm: str) -> None:
    TrajectoryStore(tmp_path).extend([trajectory(f"r{i}") for i in range(5)])
    index, path = tmp_path / ".trajectories.jsonl.index", tmp_path / "trajectories.jsonl"
    if harm == "missing":
        index.unlink()
    elif harm == "torn":
        index.write_bytes(index.read_bytes()[:-9])
    elif harm == "garbage":
        index.write_bytes(b"\0\xff\n" * 100)
    else:
        path.write_bytes(path.read_bytes().replace(b'"r4"', b'"x4"'))
    store = TrajectoryStore(tmp_path)
    assert store.ids() == set(ids(tmp_path)) and len(store) == 5
    assert store.append(trajectory("r5")) and not store.append(trajectory("r0"))
    assert TrajectoryStore(tmp_path).ids() == set(ids(tmp_path))


def test_bad_lines_are_counted_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "trajectories.jsonl"
    good = json.dumps(trajectory("r1").to_dict()).encode()
    path.write_bytes(b"\n".join([good, b"{]", b'{"id": 5}', b'{"id": "x", "nodes": [{}]}', b"[1]", good, good + good]))
    found, skipped = read_trajectories(tmp_path)
    assert [t.id for t in found] == ["r1"]
    assert [s.line for s in skipped] == [2, 3, 4, 5, 6, 7, 7]
    assert all(s.reason and s.file == str(path) for s in skipped)
    assert TrajectoryStore(tmp_path).append(trajectory("r2"))


WRITER = """
import sys
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import message
store = TrajectoryStore(sys.argv[1])
nodes = [Node(id="a", parent=None, message=message("user", "x" * 3000))]
print(sum(store.append(Trajectory(id=f"r{i}", nodes=nodes)) for i in range(60)))
"""


def test_several_processes_share_a_ledger(tmp_path: Path) -> None:
    runs = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    wrote = [int(run.communicate(timeout=120)[0]) for run in runs]
    assert sum(wrote) == 60
    assert sorted(ids(tmp_path)) == sorted(f"r{i}" for i in range(60))
    assert len(TrajectoryStore(tmp_path)) == 60


def test_nothing_there_is_nothing(tmp_path: Path) -> None:
    found, skipped = read_trajectories(tmp_path / "nowhere")
    assert list(found) == [] and skipped == []
