"""Every fault that is planted is found, in the row where it was planted; an honest file has none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from data_stage.episodes import episode

from inloop.data.audit import CHECKS, Audit, audit
from inloop.data.builder import Builder
from inloop.data.drops import Drops
from inloop.data.mask import RL, MaskConfig
from inloop.data.sample import MASKED, Header, Sample, Span
from inloop.data.tokens import opening_ids
from inloop.harness.text import TextDialect

ROW = 1


@dataclasses.dataclass
class Good:
    """Three honest rows, what is known about them, and the count."""

    samples: list[Sample]
    header: Header
    drops: Drops
    vocabulary: int

    def audit(self) -> Audit:
        return audit(self.samples, self.header, vocabulary=self.vocabulary, drops=self.drops)


@pytest.fixture
def good(tokenizer: Any, dialect: TextDialect) -> Good:
    builder = Builder(tokenizer=tokenizer, stop_ids=dialect.stop_token_ids, encoder=lambda t: dialect)
    samples = [s for i in range(3) for s in builder.take(episode(f"t{i}", bug=f"a - b - {i}"))]
    builder.drops.trajectories = 3
    header = Header(
        stop_ids=dialect.stop_token_ids,
        opening_ids=opening_ids(dialect),
        mask=dataclasses.asdict(MaskConfig()),
        max_tokens=2048,
    )
    return Good(samples, header, builder.drops, len(tokenizer))


def test_honest_rows_pass(good: Good) -> None:
    report = good.audit()
    assert report.ok and report.to_dict()["checks"] == dict.fromkeys(CHECKS, "ok")
    assert report.trained == sum(s.trained for s in good.samples) > 0


def train_a_user_token(sample: Sample) -> None:
    user = sample.spans[1]
    sample.labels[user.start + 3] = sample.input_ids[user.start + 3]


def train_a_tool_result(sample: Sample) -> None:
    tool = next(s for s in sample.spans if s.role == "tool")
    sample.labels[tool.start : tool.end] = sample.input_ids[tool.start : tool.end]


def call_the_user_message_sampled(sample: Sample) -> None:
    """The mask and the account of it are wrong in the same way: only the tokens themselves tell."""
    user = sample.spans[1]
    user.role, user.sampled, user.trained = "assistant", True, True
    sample.labels[user.start : user.end] = sample.input_ids[user.start : user.end]


def shift_a_turn_into_the_prompt(sample: Sample) -> None:
    before, turn = sample.spans[1], sample.spans[2]
    before.end = turn.start = turn.start - 2
    sample.labels[turn.start : turn.end] = sample.input_ids[turn.start : turn.end]


def mask_the_stop_token(sample: Sample) -> None:
    sample.labels[sample.spans[4].end - 1] = MASKED


def truncate_the_deciding_turn(sample: Sample) -> None:
    """As a trainer's max_length does: the tail is gone, the account isn't."""
    sample.input_ids, sample.labels = sample.input_ids[:-4], sample.labels[:-4]


def truncate_with_the_account(sample: Sample) -> None:
    truncate_the_deciding_turn(sample)
    sample.spans[-1].end -= 4


def drop_the_deciding_turn(sample: Sample) -> None:
    last = sample.spans.pop()
    sample.input_ids, sample.labels = sample.input_ids[: last.start], sample.labels[: last.start]


def mask_the_deciding_turn(sample: Sample) -> None:
    last = sample.spans[-1]
    sample.labels[last.start : last.end] = [MASKED] * (last.end - last.start)
    last.trained = False


def mask_everything(sample: Sample) -> None:
    sample.labels = [MASKED] * len(sample.labels)
    for span in sample.spans:
        span.trained, span.why = False, "because"


def empty(sample: Sample) -> None:
    sample.input_ids, sample.labels, sample.spans = [], [], []


def repeat_a_message_under_its_name(sample: Sample) -> None:
    last = sample.spans[-1]
    _append(sample, last.node)


def repeat_a_message_under_another_name(sample: Sample) -> None:
    _append(sample, "copy")


def _append(sample: Sample, node: str) -> None:
    last, opening = sample.spans[-1], sample.input_ids[: sample.spans[0].end]
    ids = sample.input_ids[last.start : last.end]
    start = len(sample.input_ids) + len(opening)
    sample.spans.append(Span(node="o", role="system", start=last.end, end=start))
    sample.spans.append(
        Span(node=node, role="assistant", start=start, end=start + len(ids), sampled=True, trained=True)
    )
    sample.input_ids += opening + ids
    sample.labels += [MASKED] * len(opening) + ids


def label_that_is_another_token(sample: Sample) -> None:
    sample.labels[sample.spans[2].start] += 1


def unknown_id(sample: Sample) -> None:
    sample.input_ids[5] = 1_000_000


def too_long(sample: Sample) -> None:
    extra = 2049 - len(sample.input_ids)
    sample.input_ids = [*([7] * extra), *sample.input_ids]
    sample.labels = [*([MASKED] * extra), *sample.labels]
    for span in sample.spans:
        span.start, span.end = span.start + extra, span.end + extra
    sample.spans[0].start = 0


def not_a_number(sample: Sample) -> None:
    sample.weights = [float("nan")] * len(sample.input_ids)


def short_logprobs(sample: Sample) -> None:
    sample.logprobs = [-0.1]


@pytest.mark.parametrize(
    ("check", "plant"),
    [
        ("roles", train_a_user_token),
        ("roles", train_a_tool_result),
        ("roles", call_the_user_message_sampled),
        ("roles", shift_a_turn_into_the_prompt),
        ("stop", mask_the_stop_token),
        ("length", truncate_the_deciding_turn),
        ("deciding", truncate_with_the_account),
        ("deciding", drop_the_deciding_turn),
        ("deciding", mask_the_deciding_turn),
        ("empty", mask_everything),
        ("empty", empty),
        ("once", repeat_a_message_under_its_name),
        ("once", repeat_a_message_under_another_name),
        ("labels", label_that_is_another_token),
        ("decode", unknown_id),
        ("length", too_long),
        ("numbers", not_a_number),
        ("numbers", short_logprobs),
    ],
)
def test_a_planted_fault_is_found(check: str, plant: Callable[[Sample], None], good: Good) -> None:
    plant(good.samples[ROW])
    report = good.audit()
    assert ROW in report.rows_of(check), report.findings
    assert {f.row for f in report.findings} <= {ROW, -1}


def test_the_same_message_in_two_rows(good: Good) -> None:
    good.samples[2] = dataclasses.replace(good.samples[0], id="again")
    assert good.audit().rows_of("once") == [2]


def test_an_exact_copy_under_another_trajectory(good: Good) -> None:
    good.samples[2] = dataclasses.replace(good.samples[0], id="again", trajectory="other")
    assert good.audit().rows_of("once") == [2]
    for sample in good.samples:  # two rollouts of a group may say the same
        sample.advantage = 0.5
    assert good.audit().rows_of("once") == []


def test_rows_that_are_missing_without_a_reason(good: Good) -> None:
    del good.samples[1]
    assert good.audit().rows_of("length") == [-1]
    good.drops.trajectories = 5
    assert any("5 trajectories read" in f.detail for f in good.audit().findings)


def test_a_cut_turn_is_fine_for_rl_alone(good: Good) -> None:
    truncate_with_the_account(good.samples[ROW])
    good.header = dataclasses.replace(good.header, mask=dataclasses.asdict(RL))
    assert good.audit().ok


def test_an_empty_set_does_not_pass() -> None:
    report = audit([], Header(stop_ids=(2,)))
    assert not report.ok and report.rows_of("empty") == [-1]
