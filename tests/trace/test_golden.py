"""Every sample file: exact counts of turns, calls and results, every record accounted for, the same episode."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from inloop.trace.check import check
from inloop.trace.read.paths import Source, sources
from inloop.trace.read.route import Tally
from inloop.trace.skipped import Skipped
from inloop.trace.trajectory import Trajectory

SAMPLES = Path(__file__).parents[1] / "data" / "traces"
GOLDEN: dict[str, Any] = json.loads((SAMPLES.parent / "traces_golden.json").read_text())
SOURCES = sources([SAMPLES], [])

COMMANDS = ["cat calc.py", "cat tests/test_calc.py", "sed -i 's/a - b/a + b/' calc.py", "pytest -q"]
RESULTS = ["def add(a, b):", "from calc import add", "", "1 passed"]
CANONICAL = [
    "anthropic/messages_request.json", "atif/trajectory.json", "*000000000001.jsonl", "-work-calc/1111*.jsonl",
    "hermes/messages.jsonl", "hf_sts/session.jsonl", "inspect/calc.eval",
    "mini_swe_agent/v2_toolcalls.traj.json", "mini_swe_agent/v2_responses.traj.json",
    "openai_chat/messages.jsonl", "opencode/export.json", "opencode/opencode.db", "opencode/storage",
    "openhands/v0_trajectory.json", "openhands/v0_eval_row.jsonl", "openhands/v1_conversation",
    "*_33333333.jsonl", "sharegpt/conversations.jsonl", "trl/messages_tools.jsonl",
    "datasets/nemotron_agentic.jsonl", "datasets/swe_gym.jsonl", "datasets/swe_smith.jsonl",
    "datasets/swe_rebench_openhands.jsonl", "edge_cases/chat_results_out_of_order.jsonl",
    "edge_cases/chat_without_ids.jsonl", "edge_cases/claude_crlf_and_bom.jsonl",
    "edge_cases/claude_glued_records.jsonl", "edge_cases/claude_nul_block.jsonl",
    "edge_cases/claude_duplicate_uuids_after_branch.jsonl", "edge_cases/claude_results_out_of_order.jsonl",
]  # fmt: skip


def name(source: Source) -> str:
    return source.name.removeprefix("traces/")


def read(source: Source) -> tuple[list[Trajectory], list[Skipped], Tally]:
    skipped: list[Skipped] = []
    tally = Tally()
    return list(source.read(skipped, tally)), skipped, tally


def summary(source: Source) -> dict[str, Any]:
    trajectories, skipped, tally = read(source)
    rows = [
        {
            "format": t.meta["format"],
            **{k: int(v) for k, v in t.counts.items()},
            "sampled": sum(n.sampled for n in t.nodes),
            "messages": len(t.nodes),
            "contexts": len(t.leaves()),
            "findings": sorted({f.code for f in check(t)}),
        }
        for t in trajectories
    ]
    return {
        "trajectories": rows,
        "skipped": [[s.line, s.kind, s.reason] for s in skipped],
        "records": [tally.records, tally.used, tally.metadata.total()],
    }


def test_the_golden_file_names_every_sample() -> None:
    assert sorted(GOLDEN) == sorted(name(s) for s in SOURCES)
    assert len(GOLDEN) > 75


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_counts(source: Source) -> None:
    assert summary(source) == GOLDEN[name(source)]


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_every_record_is_accounted_for(source: Source) -> None:
    _, skipped, tally = read(source)
    assert tally.records == tally.used + tally.metadata.total() + sum(s.kind == "record" for s in skipped)
    assert all(s.reason and s.file.startswith("traces/") for s in skipped)


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_the_forest_is_sound(source: Source) -> None:
    for trajectory in read(source)[0]:
        assert [f for f in check(trajectory) if f.level == "error"] == []
        for node in trajectory.nodes:
            assert not node.sampled or node.message.role == "assistant"
            assert node.source and node.source[0].startswith("traces/")


def canonical() -> list[Source]:
    return [s for s in SOURCES if any(Path(name(s)).match(p) for p in CANONICAL)]


def test_the_canonical_list_matches_files() -> None:
    assert len(canonical()) == len(CANONICAL)


@pytest.mark.parametrize("source", canonical(), ids=name)
def test_each_format_tells_the_same_episode(source: Source) -> None:
    (trajectory,) = read(source)[0]
    leaf = next(n for n in trajectory.leaves() if "Fixed" in n.message.text)
    path = [n.message for n in trajectory.path(leaf)]
    assert [m.text for m in path if m.role == "user" and not m.origin] == [
        "tests/test_calc.py fails: add(2, 3) returns -1. Fix it."
    ]
    calls = [c for m in path for c in m.all_calls]
    commands = [(c.arguments or {}).get("command") or (c.arguments or {}).get("cmd") for c in calls]
    assert [c for c in commands if c and not c.startswith("echo")] == COMMANDS
    answers = {m.call_id: m.text for m in path if m.role == "tool"}
    for call, start in zip(calls, RESULTS, strict=False):
        text = answers[call.id].removeprefix("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n")
        text = text.removeprefix("<returncode>0</returncode>\n<output>\n").removesuffix("</output>")
        assert text.startswith(start) and bool(text) == bool(start)
    assert [m.text for m in path if m.role == "assistant"][-1] == "Fixed: add() now adds, and the test passes."


if __name__ == "__main__":  # write the golden file anew; read the difference before you commit it
    (SAMPLES.parent / "traces_golden.json").write_text(
        json.dumps({name(s): summary(s) for s in SOURCES}, indent=1, sort_keys=True) + "\n"
    )
    print(Counter(t["format"] for v in map(summary, SOURCES) for t in v["trajectories"]))
