"""Planted faults have to trip the receipt; an honest run has to hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from inloop.data.sample import MASKED, Sample
from inloop.errors import DataError
from inloop.trace.trajectory import Node, Trajectory
from inloop.train.receipt import Receipt, Thresholds, witness
from inloop.types import message


def captured() -> Trajectory:
    """system+user, turn, observation, turn; and a second context that forks after the first turn."""
    nodes = [
        Node(id="0", parent=None, message=message("user", "fix"), token_ids=[1, 2, 3]),
        Node(
            id="1",
            parent="0",
            message=message("assistant", "read"),
            sampled=True,
            token_ids=[10, 11],
            logprobs=[-0.5, -0.1],
        ),
        Node(id="2", parent="1", message=message("tool", "text"), token_ids=[4, 5]),
        Node(
            id="3",
            parent="2",
            message=message("assistant", "edit"),
            sampled=True,
            token_ids=[12, 13],
            logprobs=[-0.7, -0.2],
        ),
        Node(id="4", parent="1", message=message("tool", "other"), token_ids=[6]),
        Node(id="5", parent="4", message=message("assistant", "bye"), sampled=True, token_ids=[14], logprobs=[-0.3]),
    ]
    return Trajectory(id="r", nodes=nodes)


def honest() -> Sample:
    return Sample(
        id="r#3",
        trajectory="r",
        input_ids=[1, 2, 3, 10, 11, 4, 5, 12, 13],
        labels=[MASKED] * 3 + [10, 11] + [MASKED] * 2 + [12, 13],
        logprobs=[0.0] * 3 + [-0.5, -0.1] + [0.0] * 2 + [-0.7, -0.2],
    )


def shifted_mask(s: Sample) -> Sample:
    labels = [MASKED, *[t if m != MASKED else MASKED for t, m in zip(s.input_ids[1:], s.labels[:-1], strict=True)]]
    return replace(s, labels=labels)


def rerendered(s: Sample) -> Sample:
    return replace(s, input_ids=[1, 2, 9, *s.input_ids[3:]])


def other_token(s: Sample) -> Sample:
    return replace(s, labels=[*s.labels[:-1], 99])


def raw_logprobs(s: Sample) -> Sample:
    return replace(s, logprobs=[p * 1.3 for p in s.logprobs or []])


def test_an_honest_sample_is_identical_and_so_is_a_fork() -> None:
    seen = witness(honest(), captured())
    assert (seen.trained, seen.identical) == (4, 4)
    fork = Sample(
        id="r#5",
        trajectory="r",
        input_ids=[1, 2, 3, 10, 11, 6, 14],
        labels=[MASKED] * 6 + [14],
        logprobs=[0.0] * 6 + [-0.3],
    )
    assert witness(fork, captured()).identical == 1


@pytest.mark.parametrize("fault", [shifted_mask, rerendered, other_token, raw_logprobs])
def test_planted_faults_are_seen(fault) -> None:  # type: ignore[no-untyped-def]
    seen = witness(fault(honest()), captured())
    assert seen.identical < seen.trained
    receipt = Receipt(trained=seen.trained, identical=seen.identical)
    assert any("are the sampled ones" in f for f in receipt.failures())
    with pytest.raises(DataError, match="the receipt does not hold"):
        receipt.check()


def test_a_context_without_ids_witnesses_nothing() -> None:
    trajectory = captured()
    trajectory.nodes[0].token_ids = None
    assert witness(honest(), trajectory).identical == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r.ratios.append((0, 10, 0.02, 0.0)), r"\|ratio - 1\| at the first step"),
        (lambda r: r.ratios.append((0, 10, 0.0, 0.05)), "KL at the first step"),
        (lambda r: r.ratios.append((0, 10, float("nan"), 0.0)), r"\|ratio - 1\| at the first step"),
        (lambda r: r.ratios.extend([(0, 10, 0.0, 0.0), (5, 10, 0.9, 0.1)]), "a later step"),
        (lambda r: r.syncs.append((3, 0.2)), "does not serve weight version 3"),
        (lambda r: r.faults.update({"sandbox_fault": 5}), "met a fault"),
        (lambda r: setattr(r, "leaks", 1), "outlived"),
    ],
)
def test_each_threshold_trips(change, words: str) -> None:  # type: ignore[no-untyped-def]
    import re

    receipt = Receipt(trained=10, identical=10, rollouts=10)
    assert not receipt.failures()
    change(receipt)
    assert any(re.search(words, f) for f in receipt.failures()), receipt.failures()


def test_float32_is_held_to_more() -> None:
    loose = Receipt(dtype="bfloat16", ratios=[(0, 10, 5e-3, 0.0)])
    strict = Receipt(dtype="float32", ratios=[(0, 10, 5e-3, 0.0)])
    assert not loose.failures() and strict.failures()
    assert not Receipt(dtype="float32", ratios=[(0, 10, 5e-3, 0.0)], thresholds=Thresholds(step0_ratio=1e-2)).failures()


def test_first_and_later_steps_are_weighted_by_tokens() -> None:
    receipt = Receipt(ratios=[(4, 10, 0.0, 0.0), (4, 30, 0.004, 0.0), (5, 1, 0.1, 0.01), (5, 1, 0.3, 0.03)])
    assert receipt.step(True) == pytest.approx((0.003, 0.0)) and receipt.step(False) == pytest.approx((0.2, 0.02))


def test_state_goes_on_and_the_file_reads(tmp_path: Path) -> None:
    receipt = Receipt(trained=5, identical=5, rollouts=3, groups=2, ratios=[(0, 5, 0.0, 0.0)], syncs=[(1, 0.0)])
    receipt.staleness.update({0: 3, 2: 1})
    receipt.drops["zero_variance"] += 1
    again = Receipt()
    again.restore(json.loads(json.dumps(receipt.state())))
    assert again == receipt
    written = json.loads(receipt.write(tmp_path).read_text())
    assert written["verdict"] == "holds" and written["zero_variance_share"] == 0.5
    assert written["staleness"] == {"0": 3, "2": 1} and "100.00% of 5 trained tokens" in receipt.line()
