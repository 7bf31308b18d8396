from __future__ import annotations

from pathlib import Path

import pytest

from inloop.errors import DataError
from inloop.evaluate.compare import compare_all, compare_pair, gate
from inloop.evaluate.results import Results, load_results
from inloop.evaluate.score import TaskFacts, score_tasks, summarise
from inloop.trace.trajectory import Trajectory
from inloop.types import Reward, StopReason, Verdict


def rollout(task: str, number: int, value: float | None, **kw: object) -> Trajectory:
    verdict = Verdict.FAULT if value is None else Verdict.PASSED if value >= 1 else Verdict.FAILED
    return Trajectory(
        id=f"{task}-{number}",
        task_id=task,
        reward=Reward(value=value, verdict=verdict, fraction=value),
        stop=kw.pop("stop", StopReason.SUBMITTED),  # type: ignore[arg-type]
        counts={"turns": 3, **kw},  # type: ignore[dict-item]
        timings={"total": 2.0},
    )


def results(name: str, table: dict[str, list[float | None]], *, ground: str = "g") -> Results:
    trajectories = [rollout(t, i, v) for t, values in table.items() for i, v in enumerate(values)]
    rows = score_tasks([TaskFacts(id=t, kind="operator", oracle=True) for t in table], trajectories)
    return Results(
        name=name,
        checkpoint={"model": name},
        taskset={"path": ground, "hash": ground},
        harness={"hash": "h"},
        sampling={"k": 4, "temperature": 1.0},
        summary=summarise(rows, trajectories, k=4),
        rows=rows,
    )


def test_faults_are_apart_and_never_zero() -> None:
    scored = results("m", {"a": [1.0, None, 1.0, None], "b": [0.0, 1.0, 0.0, 0.0], "c": [None] * 4})
    assert scored.summary["pass@1"]["mean"] == pytest.approx((1.0 + 0.25) / 2)
    assert scored.summary["tasks_without_score"] == ["c"] and scored.summary["samples"] == 6
    assert scored.summary["pass@2"]["mean"] == pytest.approx((1.0 + 0.5) / 2)
    assert scored.summary["pass@4"] == {
        "mean": 0.0 + 1.0,
        "low": pytest.approx(0.2065, abs=1e-3),
        "high": 1.0,
        "tasks": 1,
    }
    assert scored.summary["ceiling"] == {"solved": 3, "audited": 3}


def test_rates_go_by_measured_difficulty_else_by_the_level_that_the_builder_expects() -> None:
    known = [TaskFacts(id="a", level="named"), TaskFacts(id="b", level="open", difficulty=0.52), TaskFacts(id="c")]
    rollouts = [rollout(t.id, 0, 1.0) for t in known]
    found = summarise(score_tasks(known, rollouts), rollouts, k=1)["by_difficulty"]
    assert {name: score["tasks"] for name, score in found.items()} == {"named": 1, "0.5": 1, "-": 1}


def test_stop_faults_count_as_faults_whatever_the_reward_says() -> None:
    rows = score_tasks([TaskFacts(id="a")], [rollout("a", 0, 0.0, stop=StopReason.ENGINE_FAULT), rollout("x", 1, 1.0)])
    assert (rows[0].scored, rows[0].faults) == (0, 1)


def test_recovery_counts_only_episodes_with_a_failing_test() -> None:
    rows = [rollout("a", 0, 1.0, test_failures=2), rollout("a", 1, 0.0, test_failures=1), rollout("a", 2, 1.0)]
    summary = summarise(score_tasks([TaskFacts(id="a")], rows), rows, k=2)
    assert summary["recovery"] == {"episodes": 2, "passed": 1, "rate": 0.5}


def test_valid_calls_are_a_share_of_turns_with_the_task_as_the_unit() -> None:
    rows = [rollout("a", 0, 0.0, invalid_calls=3), rollout("a", 1, 0.0), rollout("b", 2, 1.0, invalid_calls=9)]
    summary = summarise(score_tasks([TaskFacts(id="a"), TaskFacts(id="b")], rows), rows, k=2)
    assert (summary["valid_calls"]["mean"], summary["valid_calls"]["tasks"]) == (0.25, 2)


def test_zero_tasks_and_all_faults_have_no_rate() -> None:
    nothing, faults = results("m", {}), results("n", {"a": [None, None]})
    for one in (nothing, faults):
        assert one.summary["pass@1"] == {"mean": None, "low": 0.0, "high": 1.0, "tasks": 0}
    with pytest.raises(DataError, match="no scored task in common"):
        compare_pair(nothing, faults)


def test_results_read_back_equal_and_broken_ones_are_told(tmp_path: Path) -> None:
    one = results("m", {"a": [1.0, 0.0]})
    one.write(tmp_path)
    assert load_results(tmp_path) == one
    (tmp_path / "results.json").write_text('{"format": 1, "name"')
    with pytest.raises(DataError, match="not a results file"):
        load_results(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        load_results(tmp_path / "none")


LOW = {f"t{i}": [1.0, 0.0, 0.0, 0.0] if i % 4 == 0 else [0.0] * 4 for i in range(40)}
HIGH = {f"t{i}": [1.0, 1.0, 1.0, 0.0] if i % 2 == 0 else [0.0] * 4 for i in range(40)}


def test_better_names_what_it_fixed_and_passes_the_gate() -> None:
    pair = compare_pair(results("low", LOW), results("high", HIGH))
    assert pair.comparison.verdict == "better" and pair.comparison.p < 0.01
    assert set(pair.fixed) == {f"t{i}" for i in range(0, 40, 2)} and not pair.broken
    assert pair.fixed[0] not in LOW or pair.fixed[0] in {f"t{i}" for i in range(2, 40, 4)}
    assert gate(pair).promoted
    assert not gate(pair, margin=0.3).promoted


def test_gate_refuses_what_forgets() -> None:
    better = compare_pair(results("low", LOW), results("high", HIGH))
    kept = compare_pair(results("high", HIGH), results("low", LOW))
    refused = gate(better, retention=kept)
    assert not refused.promoted and "retention: worse" in refused.reasons[0]
    same = compare_pair(results("low", LOW), results("low", LOW))
    assert not gate(same).promoted and gate(better, retention=same).promoted


def test_undecided_says_what_would_decide() -> None:
    slightly = {t: list(v) for t, v in LOW.items()}
    slightly["t1"], slightly["t2"] = [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
    pair = compare_pair(results("a", LOW), results("b", slightly))
    assert pair.comparison.verdict == "can't tell"
    assert pair.comparison.more_tasks is not None and pair.comparison.more_tasks > 0


def test_different_ground_is_refused_and_different_harness_is_told() -> None:
    a, b = results("a", LOW), results("b", HIGH, ground="other")
    with pytest.raises(DataError, match="scored on different tasks"):
        compare_pair(a, b)
    c = results("c", HIGH)
    c.harness["hash"] = "x"
    assert "the harness differs" in compare_pair(a, c).warnings[0]


def test_three_are_compared_in_a_row_and_end_to_end() -> None:
    pairs = compare_all([results("a", LOW), results("b", LOW), results("c", HIGH)])
    assert [(p.a, p.b) for p in pairs] == [("a", "b"), ("b", "c"), ("a", "c")]
