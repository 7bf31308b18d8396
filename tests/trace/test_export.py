"""Round trips hold what the format can hold, and the rest is named."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inloop.errors import DataError
from inloop.trace.check import check
from inloop.trace.export import export
from inloop.trace.read.paths import read
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Image, Message, Text, Thinking, message

SAMPLES = Path(__file__).parents[1] / "data" / "traces"


def told(trajectory: Trajectory) -> list[Any]:
    """Each context as plain rows: what a chat-shaped format can hold."""
    out = []
    for path in trajectory.paths():
        rows = []
        for node in path:
            m = node.message
            thoughts = "".join(p.text for p in m.parts if isinstance(p, Thinking) and not p.hidden)
            rows.append((m.role, thoughts, m.text, [(c.id, c.name, c.raw, c.arguments) for c in m.calls], m.call_id))
        out.append(rows)
    return out


def rich() -> Trajectory:
    """A fork, a malformed call, an empty and a missing result, ids, a sub-agent, an image."""
    turn = Message(
        role="assistant",
        parts=(
            Thinking(text="hm"), Text(text="reading"),
            Call(id="c1", name="bash", arguments={"command": "ls"}, raw='{"command":   "ls"}'),
            Call(id="c2", name="bash", arguments=None, raw='{"command'),
        ),
    )  # fmt: skip
    ask = Message(role="user", parts=(Text(text="look"), Image(sha256="ab" * 32, media_type="image/png")))
    nodes = [
        Node(id="s", parent=None, message=message("system", "be good"), token_ids=[1, 2]),
        Node(id="u", parent="s", message=ask, token_ids=[3], time=1768467601.25),
        Node(id="a", parent="u", message=turn, sampled=True, token_ids=[4, 5, 6], logprobs=[-0.5, -0.25, 0.0]),
        Node(id="r", parent="a", message=message("tool", "", call_id="c1"), token_ids=[7]),
        Node(id="b", parent="r", message=message("assistant", "done"), sampled=True, token_ids=[8], logprobs=[-1.0]),
        Node(id="v", parent="r", message=message("assistant", "or so"), sampled=True, token_ids=[9], logprobs=[-2.0]),
        Node(id="x", parent=None, message=message("user", "where?")),
        Node(id="y", parent="x", message=message("assistant", "here"), sampled=True),
    ]
    tool = {"type": "function", "function": {"name": "bash", "description": "", "parameters": {"type": "object"}}}
    links = [{"root": "x", "call_id": "c1", "name": "explore"}]
    return Trajectory(
        id="t1", nodes=nodes, model="m", agent={"name": "ours", "version": "2"}, tools=[tool], meta={"subagents": links}
    )


def back(trajectory: Trajectory, target: str, folder: Path) -> tuple[list[Trajectory], dict[str, int]]:
    done = export([trajectory], target, folder / ("x.jsonl" if target == "chat" else "out"))
    found, skipped = read(folder / ("x.jsonl" if target == "chat" else "out"))
    result = list(found)
    assert skipped == []
    for one in result:
        assert [f for f in check(one) if f.level == "error"] == []
    return result, done.lost


@pytest.mark.parametrize("target", ["atif", "chat", "sts"])
def test_every_context_comes_back(tmp_path: Path, target: str) -> None:
    trajectory = rich()
    if target == "sts":  # holds no images
        trajectory.nodes[1].message = message("user", "look")
    found, lost = back(trajectory, target, tmp_path)
    assert sorted(map(str, (rows for t in found for rows in told(t)))) == sorted(map(str, told(trajectory)))
    assert lost["the forest is cut into one row a context"] == 2


@pytest.mark.parametrize("target", ["atif", "chat"])
def test_each_turn_is_trained_once(tmp_path: Path, target: str) -> None:
    found, _ = back(rich(), target, tmp_path)
    trained = Counter(n.message.text for t in found for n in t.nodes if n.sampled)
    assert trained == {"reading": 1, "done": 1, "or so": 1, "here": 1}


def test_atif_keeps_ids_and_logprobs(tmp_path: Path) -> None:
    trajectory = rich()
    del trajectory.nodes[5:]
    trajectory.meta = {}
    ((after,), _) = back(trajectory, "atif", tmp_path)
    ids = lambda t: [i for n in t.path(t.leaves()[0]) for i in n.token_ids or ()]  # noqa: E731
    assert ids(after) == ids(trajectory) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [n.logprobs for n in after.nodes if n.sampled] == [[-0.5, -0.25, 0.0], [-1.0]]
    assert after.tools == trajectory.tools and after.model == "m" and after.agent == trajectory.agent
    assert after.nodes[1].time == 1768467601.25


def test_atif_nests_the_sub_agent(tmp_path: Path) -> None:
    found, _ = back(rich(), "atif", tmp_path)
    (link,) = [link for t in found for link in t.meta.get("subagents", ())]
    assert link["call_id"] == "c1"


def test_a_missing_and_an_empty_result_differ_afterwards(tmp_path: Path) -> None:
    for target in ("atif", "chat", "sts"):
        trajectory = rich()
        trajectory.nodes[1].message = message("user", "look")
        found, _ = back(trajectory, target, tmp_path / target)
        answers = [(n.message.call_id, n.message.text) for n in found[0].nodes if n.message.role == "tool"]
        assert answers == [("c1", "")]


def test_the_loss_is_named(tmp_path: Path) -> None:
    odd = rich()
    parts = (
        Text(text="a"),
        Thinking(text="", hidden=True),
        Call(id="e", name="x", arguments={}, raw="```\nx\n```", embedded=True),
    )
    odd.nodes[4].message = Message(role="assistant", parts=parts)
    odd.nodes[4].untrained = [(0, 1)]
    odd.nodes[1].message = replace(odd.nodes[1].message, origin="harness")
    for target, names in {
        "chat": {"hidden thoughts", "calls inside the text stay text", "token ids and log-probabilities"},
        "sts": {"tool schemas", "image bytes (the hash is kept)", "who wrote a message in another's name"},
        "atif": {"the order of thoughts, text and calls", "spans that redaction marked untrained"},
    }.items():
        out = tmp_path / target / "x.jsonl" if target == "chat" else tmp_path / target
        assert names <= set(export([odd], target, out).lost)


@pytest.mark.parametrize("target", ["atif", "chat", "sts"])
@pytest.mark.parametrize(
    "sample", ["claude_code", "codex", "pi", "opencode", "hermes", "openhands", "atif", "anthropic"]
)
def test_samples_survive(tmp_path: Path, sample: str, target: str) -> None:
    found, _ = read(SAMPLES / sample)
    for number, trajectory in enumerate(found):
        trajectory.id = f"t{number}"
        if any(isinstance(p, Image) for n in trajectory.nodes for p in n.message.parts):
            continue
        after, _ = back(trajectory, target, tmp_path / str(number))
        texts = Counter(str(rows) for t in after for rows in map(_texts, told(t)))
        assert texts == Counter(str(rows) for rows in map(_texts, told(trajectory)))


def _texts(rows: list[Any]) -> list[Any]:
    """Calls by what they say: of arguments that are no JSON the chat wire has the parsed form."""
    calls = lambda row: [(c[0], c[1], c[2] if c[3] is None else c[3]) for c in row[3]]  # noqa: E731
    return [(row[0], row[2], calls(row)) for row in rows]


def test_a_person_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="unknown format"):
        export([], "xml", tmp_path / "x")
    with pytest.raises(DataError, match="is a folder"):
        export([], "chat", tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="needs a folder"):
        export([], "atif", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "x"


def test_a_broken_export_leaves_no_half_file(tmp_path: Path) -> None:
    def broken() -> Any:
        yield rich()
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        export(broken(), "chat", tmp_path / "x.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_atif_obeys_its_own_rules(tmp_path: Path) -> None:
    export([rich()], "atif", tmp_path)
    for path in tmp_path.glob("*.json"):
        document = json.loads(path.read_text())
        for child in (document, *document.get("subagent_trajectories", ())):
            assert [s["step_id"] for s in child["steps"]] == list(range(1, len(child["steps"]) + 1))
            for step in child["steps"]:
                agent_only = {"tool_calls", "metrics", "reasoning_content", "llm_call_count"} & set(step)
                assert step["source"] == "agent" or not agent_only
                calls = {c["tool_call_id"] for c in step.get("tool_calls", ())}
                assert {r["source_call_id"] for r in step.get("observation", {}).get("results", ())} <= calls
