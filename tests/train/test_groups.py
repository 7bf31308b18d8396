from __future__ import annotations

import math

import pytest

from inloop.data.sample import MASKED, Sample
from inloop.errors import DataError
from inloop.trace.trajectory import Trajectory
from inloop.train.advise import advise, expected_mixed
from inloop.train.curriculum import Curriculum
from inloop.train.groups import RewardConfig, advantages, level, score
from inloop.types import Reward, StopReason, Verdict


def rollout(
    value: float | None,
    *,
    task: str = "t",
    number: int = 0,
    stop: StopReason = StopReason.SUBMITTED,
    fraction: float | None = None,
    **counts: float,
) -> Trajectory:
    verdict = Verdict.FAULT if value is None else Verdict.PASSED if value == 1 else Verdict.FAILED
    reward = Reward(value=value, verdict=verdict, fraction=value if fraction is None else fraction)
    return Trajectory(id=f"{task}/{number}", task_id=task, reward=reward, stop=stop, counts=dict(counts))


PLAIN = RewardConfig()


def group(*values: float | None) -> list:
    return [score(rollout(v, number=i), PLAIN, 10) for i, v in enumerate(values)]


def test_advantages_are_centred_and_scaled_over_the_scored() -> None:
    made = advantages(group(1.0, 0.0, None, 0.0))
    assert made.trains and made.advantages[2] is None
    kept = [a for a in made.advantages if a is not None]
    assert sum(kept) == pytest.approx(0, abs=1e-9) and kept[0] == pytest.approx(math.sqrt(2), rel=1e-6)
    assert list(advantages(group(1.0, 0.0), "none").advantages) == [0.5, -0.5]


def test_a_long_failure_weighs_no_more_than_a_short_pass() -> None:
    def row(rollout: str, trained: int, advantage: float) -> Sample:
        ids = list(range(trained + 2))
        labels = [MASKED, MASKED, *ids[2:]]
        return Sample(id=f"{rollout}#{trained}", trajectory=rollout, input_ids=ids, labels=labels, advantage=advantage)

    rows = [row("pass", 10, 1.0), row("fail", 20, -1.0), row("fail", 10, -1.0)]  # the failure is in two contexts
    level(rows)
    pull = [(s.advantage or 0.0) * s.trained for s in rows]
    assert pull[0] == pytest.approx(20.0) and pull[1] + pull[2] == pytest.approx(-20.0)
    assert rows[1].advantage == rows[2].advantage


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((1.0, 1.0, 1.0), "zero_variance"),
        ((0.0, 0.0), "zero_variance"),
        ((1.0, None, None), "too_few_scored"),
        ((None,), "too_few_scored"),
    ],
)
def test_groups_without_signal_are_dropped_with_their_reason(values: tuple[float | None, ...], why: str) -> None:
    made = advantages(group(*values))
    assert made.dropped == why and not made.trains and set(made.advantages) == {None}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_a_fault(value: float) -> None:
    assert score(rollout(value), PLAIN, 10).reward is None


def test_stop_reasons_decide_before_rewards() -> None:
    assert score(rollout(1.0, stop=StopReason.ENGINE_FAULT), PLAIN, 10).reward is None
    assert score(rollout(1.0, stop=StopReason.CANCELLED), PLAIN, 10).reward is None
    assert score(rollout(1.0, stop=StopReason.TURN_LIMIT), PLAIN, 10).reward == 0.0
    assert score(rollout(1.0, stop=StopReason.TURN_LIMIT), RewardConfig(must_submit=False), 10).reward == 1.0
    assert score(rollout(1.0, stop=StopReason.CONTEXT_FULL), PLAIN, 10).reward == 0.0


def test_shaping_is_named_apart_and_the_verifier_is_kept_pure() -> None:
    config = RewardConfig(turn_cost=0.1, invalid_call_cost=0.05, recovery=0.2)
    made = score(rollout(1.0, turns=5, invalid_calls=2, test_failures=1), config, 10)
    assert made.parts == {
        "turn_cost": pytest.approx(-0.05),
        "invalid_call_cost": pytest.approx(-0.1),
        "recovery": 0.2,
    }
    assert made.verified == 1.0 and made.reward == pytest.approx(1.05)
    failed = score(rollout(0.0, turns=5, test_failures=1), config, 10)
    assert "recovery" not in failed.parts
    assert score(rollout(0.0, fraction=0.75), RewardConfig(base="fraction"), 10).reward == 0.75


class TestCurriculum:
    tasks = tuple((f"t{i}", "easy" if i < 50 else "hard") for i in range(100))

    def test_same_seed_same_draws(self) -> None:
        a, b = Curriculum(self.tasks, seed=1), Curriculum(self.tasks, seed=1)
        assert [a.draw(i) for i in range(20)] == [b.draw(i) for i in range(20)]
        assert [a.draw(i) for i in range(20)] != [Curriculum(self.tasks, seed=2).draw(i) for i in range(20)]

    def test_draws_go_where_half_pass(self) -> None:
        c = Curriculum(self.tasks, seed=0)
        for i in range(20):
            c.update(f"t{i}", [1.0] * 8)  # easy tasks all pass
            c.update(f"t{50 + i}", [1.0, 0.0] * 4)
        drawn = [c.draw(i) for i in range(400)]
        hard = sum(int(t[1:]) >= 50 for t in drawn) / len(drawn)
        assert hard > 0.65
        assert c.weight("t0") < c.weight("t40") < c.weight("t50")

    def test_tasks_in_flight_are_passed_over(self) -> None:
        c = Curriculum([("a", "k"), ("b", "k")], seed=0)
        assert {c.draw(i, ["a"]) for i in range(20)} == {"b"}
        assert c.draw(0, ["a", "b"]) in ("a", "b")

    def test_state_goes_on_where_it_was(self) -> None:
        c = Curriculum(self.tasks, seed=3)
        c.update("t1", [1.0, 0.0])
        again = Curriculum(self.tasks, seed=3)
        again.restore(c.state())
        assert [c.draw(i) for i in range(50)] == [again.draw(i) for i in range(50)]

    def test_no_tasks_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least one task"):
            Curriculum([], seed=0)


def pilot(table: dict[str, list[float | None]]) -> list[Trajectory]:
    return [rollout(v, task=t, number=i) for t, values in table.items() for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("table", "step", "signal"),
    [
        ({f"t{i}": [1.0, 0.0, 0.0, 0.0] for i in range(20)}, "go", True),
        ({f"t{i}": [0.0] * 4 for i in range(80)}, "sft first", False),
        ({f"t{i}": [1.0] * 4 for i in range(80)}, "harder tasks", False),
        ({f"t{i}": [1.0, 0, 0, 0] if i < 8 else [0.0] * 4 for i in range(60)}, "larger groups", True),
        ({f"t{i}": [None, None, 1.0, 0.0] for i in range(8)}, "mend faults", False),
    ],
)
def test_advice(table: dict[str, list[float | None]], step: str, signal: bool) -> None:
    advice = advise(pilot(table), seconds=60, rewards=PLAIN, max_turns=10)
    assert (advice.step, advice.has_signal) == (step, signal), advice.sentence
    assert sum(advice.histogram.values()) == advice.tasks == len(table)


def test_advice_needs_something_scored() -> None:
    with pytest.raises(DataError, match="met faults"):
        advise(pilot({"t": [None, None, 1.0]}), seconds=1, rewards=PLAIN, max_turns=10)


def test_larger_groups_are_mixed_more_often() -> None:
    groups = [[True, False, False, False], [False] * 4, [True] * 4]
    shares = [expected_mixed(groups, size) for size in (2, 4, 8, 16)]
    assert shares == sorted(shares) and 0 < shares[0] < shares[-1] < 1
