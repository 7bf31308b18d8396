"""What trains is exactly what the model said, once; everything else has a counted reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from data_stage.episodes import capture, episode, result, turn

from inloop.data.builder import Builder
from inloop.data.mask import RL, MaskConfig
from inloop.data.sample import MASKED, Sample
from inloop.harness.text import TextDialect
from inloop.trace.trajectory import Node, Trajectory, plain
from inloop.types import Call, Message, Text, Thinking, message

EVERY_TURN = [
    "Look.\n```read calc.py```<|im_end|>",
    "```edit calc.py\na - b\n=======\nb - a\n```<|im_end|>",
    "```test```<|im_end|>",
    "Other way.\n```edit calc.py\nb - a\n=======\na + b\n```<|im_end|>",
    "```test```<|im_end|>",
    "```submit```<|im_end|>",
]


@pytest.fixture
def make(tokenizer: Any, dialect: TextDialect) -> Callable[..., Builder]:
    def builder(config: MaskConfig | None = None, max_tokens: int = 0, rendered: bool = True) -> Builder:
        return Builder(
            tokenizer=tokenizer,
            stop_ids=dialect.stop_token_ids,
            encoder=lambda t: dialect if rendered else None,
            config=config or MaskConfig(),
            max_tokens=max_tokens,
        )

    return builder


def trained_texts(sample: Sample, tokenizer: Any) -> list[str]:
    """The maximal runs of labels, decoded."""
    runs: list[list[int]] = [[]]
    for label in sample.labels:
        if label == MASKED:
            runs.append([])
        else:
            runs[-1].append(label)
    return [tokenizer.decode(run) for run in runs if run]


@pytest.mark.parametrize("form", ["rendered", "captured"])
def test_exact_trained_text(form: str, make: Any, tokenizer: Any, dialect: TextDialect) -> None:
    trajectory = episode() if form == "rendered" else capture(episode(), dialect)
    builder = make()
    (sample,) = builder.take(trajectory)
    assert trained_texts(sample, tokenizer) == EVERY_TURN
    assert sample.meta["tokens"] == form
    whole = tokenizer.decode(sample.input_ids)
    assert whole.startswith(
        "<|im_start|>system\nFix the code.<|im_end|>\n<|im_start|>user\nadd is wrong: a - b<|im_end|>"
    )
    assert whole.endswith("```submit```<|im_end|>")
    assert builder.drops.trained == builder.drops.messages == 6


def test_captured_ids_are_taken_as_they_are(make: Any, captured: Any, dialect: TextDialect, tokenizer: Any) -> None:
    """Ids that no tokenizer would choose for this text stay what they are."""
    trajectory = captured()
    odd = [tokenizer.encode(c, add_special_tokens=False)[0] for c in "```test```"]
    stop = dialect.stop_token_ids[0]
    assert [*odd, stop] != trajectory.nodes[6].token_ids
    trajectory.nodes[6].token_ids, trajectory.nodes[6].logprobs = [*odd, stop], [-1.0] * 11
    (sample,) = make(rendered=False).take(trajectory)
    span = sample.spans[6]
    assert sample.input_ids[span.start : span.end] == [*odd, stop] == sample.labels[span.start : span.end]


def test_rl_columns(make: Any, captured: Any) -> None:
    trajectory = captured()
    trajectory.nodes[8].weight_version = 2
    (sample,) = make(RL).take(trajectory, advantage=-0.5)
    assert sample.advantage == -0.5 and sample.weight_version == 2 and sample.group == "g-t0"
    assert sample.logprobs is not None
    for span, node in zip(sample.spans, trajectory.nodes, strict=False):
        assert sample.logprobs[span.start : span.end] == (node.logprobs or [0.0] * (span.end - span.start))


def test_options(make: Any, tokenizer: Any) -> None:
    def texts(**kw: Any) -> list[str]:
        (sample,) = make(MaskConfig(**kw)).take(episode())
        return trained_texts(sample, tokenizer)

    assert texts(turns="last") == EVERY_TURN[-1:]
    assert texts(turns="after_failure") == EVERY_TURN[3:]


def test_turn_weights_count_from_the_last_turn_and_take_the_teachers_word(make: Any, dialect: TextDialect) -> None:
    trajectory = episode()
    trajectory.meta["turn_weights"] = {"m4": 0, "m8": 0.5}
    builder = make(MaskConfig(turn_weights=(1.0, 0.25)))
    (sample,) = builder.take(trajectory)
    assert sample.weights is not None
    by_turn = [sample.weights[s.start] for s in sample.spans if s.trained]
    assert by_turn == [0.25, 0.25, 0.125, 0.25, 1.0]
    assert builder.drops.untrained == {"weight 0": 1}
    assert all(w == 1.0 for s in sample.spans if not s.sampled for w in sample.weights[s.start : s.end])


def test_a_mistake_on_purpose_is_shown_and_not_learned(make: Any, tokenizer: Any) -> None:
    trajectory = episode()
    trajectory.nodes[4].message = dataclasses.replace(trajectory.nodes[4].message, origin="staged")
    builder = make()
    (sample,) = builder.take(trajectory)
    assert trained_texts(sample, tokenizer) == [EVERY_TURN[0], *EVERY_TURN[2:]]
    assert "b - a" in tokenizer.decode(sample.input_ids[sample.spans[4].start : sample.spans[4].end])
    assert builder.drops.untrained == {"a mistake on purpose": 1}


def test_no_thinking(make: Any, tokenizer: Any) -> None:
    trajectory = episode()
    said = trajectory.nodes[2].message
    thought = Thinking(text="Maybe é?")
    trajectory.nodes[2].message = dataclasses.replace(said, parts=(thought, *said.parts))
    (with_it,) = make().take(trajectory)
    assert trained_texts(with_it, tokenizer)[0] == "<think>\nMaybe é?\n</think>\n\n" + EVERY_TURN[0]
    (without,) = make(MaskConfig(thinking=False)).take(trajectory)
    assert trained_texts(without, tokenizer) == EVERY_TURN
    assert without.input_ids == with_it.input_ids


def test_a_shared_message_trains_in_one_sample(make: Any, tokenizer: Any, dialect: TextDialect) -> None:
    """A retry from the middle, a sub-agent, and a context after a compaction that holds an old turn again."""
    trajectory = capture(episode(), dialect)
    retry = Node(id="r0", parent="m5", message=turn("", "submit", "submit-9"), sampled=True)
    root = Node(id="s0", parent=None, message=message("user", "sub-task"))
    sub = Node(id="s1", parent="s0", message=turn("", "test", "test-1"), sampled=True)
    summary = Node(id="c0", parent=None, message=message("user", "summary so far", origin="compaction"))
    copied = Node(id="c1", parent="c0", message=trajectory.nodes[2].message, sampled=False)
    seen = Node(id="c2", parent="c1", message=trajectory.nodes[3].message)
    after = Node(id="c3", parent="c2", message=turn("", "submit", "submit-7"), sampled=True)
    for node in (root, summary):
        node.token_ids = dialect.open([node.message])
    for node in (retry, sub, copied, after):
        node.token_ids = dialect.encode_turn(node.message)
    seen.token_ids = dialect.extend(True, [seen.message])
    trajectory.nodes += [retry, root, sub, summary, copied, seen, after]
    builder = make()
    samples = builder.take(trajectory)
    assert len(samples) == 4
    trained = [span.node for s in samples for span in s.spans if span.trained]
    assert sorted(trained) == sorted(n.id for n in trajectory.nodes if n.sampled)
    assert [trained_texts(s, tokenizer) for s in samples[1:]] == [
        ["```submit```<|im_end|>"],
        ["```test```<|im_end|>"],
        ["```submit```<|im_end|>"],
    ]
    assert builder.drops.messages == builder.drops.trained == 9 and not builder.drops.untrained


def test_a_dropped_sample_leaves_its_messages_to_the_next(make: Any, dialect: TextDialect) -> None:
    trajectory = capture(episode(), dialect)
    retry = Node(id="r0", parent="m5", message=turn("", "submit", "submit-9"), sampled=True)
    retry.token_ids = dialect.encode_turn(retry.message)
    trajectory.nodes.append(retry)
    long = sum(len(n.token_ids or ()) for n in trajectory.nodes[:13])
    builder = make(max_tokens=long - 1)
    (sample,) = builder.take(trajectory)
    assert [s.node for s in sample.spans if s.trained] == ["m2", "m4", "r0"]
    assert builder.drops.reasons("sample") == {f"longer than {long - 1} tokens": 1}
    assert builder.drops.untrained == {f"longer than {long - 1} tokens": 4}
    builder.drops.trajectories = 1
    assert builder.drops.faults() == []


def test_redaction_in_ids(make: Any, captured: Any) -> None:
    trajectory = captured()
    trajectory.nodes[4].untrained_ids = [(2, 5)]
    trajectory.nodes[4].untrained = [(15, 18)]
    (sample,) = make().take(trajectory)
    span = sample.spans[4]
    labels = sample.labels[span.start : span.end]
    assert [i for i, x in enumerate(labels) if x == MASKED] == [2, 3, 4]
    assert sample.input_ids[span.start : span.end] == trajectory.nodes[4].token_ids


def test_redaction_in_text(make: Any, tokenizer: Any) -> None:
    trajectory = episode()
    raw = "```bash\ncurl -H [REDACTED-1] é\n```"
    call = Call(id="read-1", name="bash", arguments={"command": "curl -H [REDACTED-1] é"}, raw=raw)
    parts = (Text(text="key [REDACTED-1] here\n"), call)
    trajectory.nodes[2].message = Message(role="assistant", parts=parts)
    whole = plain(trajectory.nodes[2].message)
    starts = [i for i in range(len(whole)) if whole.startswith("[REDACTED-1]", i)]
    trajectory.nodes[2].untrained = [(i, i + 12) for i in starts]
    (sample,) = make().take(trajectory)
    span = sample.spans[2]
    said = tokenizer.decode([t for t in sample.labels[span.start : span.end] if t != MASKED])
    assert "REDACTED" not in said and said.startswith("key") and said.endswith("```<|im_end|>") and "curl -H" in said
    assert "[REDACTED-1]" in tokenizer.decode(sample.input_ids)


def test_faulty_turns_do_not_train(make: Any, dialect: TextDialect) -> None:
    trajectory = capture(episode(), dialect)
    malformed = Call(id="edit-4", name="edit", arguments=None, raw="```edit\nx")
    trajectory.nodes[8].message = Message(role="assistant", parts=(malformed,))
    trajectory.nodes[3].message = result("", "another")
    trajectory.nodes[6].token_ids = (trajectory.nodes[6].token_ids or [])[:-1]
    trajectory.nodes[6].logprobs = (trajectory.nodes[6].logprobs or [])[:-1]
    builder = make()
    builder.take(trajectory)
    assert builder.drops.untrained == {
        "a call without a result": 1,
        "malformed arguments": 1,
        "no stop token (cut by the token limit)": 1,
    }
    builder = make(RL)
    builder.take(trajectory)
    assert builder.drops.trained == 6


def drop_reason(builder: Builder, trajectory: Trajectory) -> str:
    assert builder.take(trajectory) == []
    (reason,) = builder.drops.reasons("trajectory")
    assert builder.drops.messages == sum(builder.drops.untrained.values())
    return reason


def test_what_gives_no_sample_says_why(make: Any, captured: Any) -> None:
    assert drop_reason(make(), Trajectory(id="empty")) == "no messages"
    asked = Trajectory(id="asked", nodes=[Node(id="m0", parent=None, message=message("user", "hello"))])
    assert drop_reason(make(), asked) == "no sample: nothing in it was sampled"
    assert "no dialect" in drop_reason(make(rendered=False), episode())
    assert drop_reason(make(max_tokens=20), episode()) == "no sample: longer than 20 tokens"
    lost = captured()
    lost.nodes[4].token_ids = None
    assert drop_reason(make(), lost) == "no sample: sampled message without token ids"
    odd = captured()
    odd.nodes[4].logprobs = [-1.0]
    assert "differ in number" in drop_reason(make(), odd)
    alone = episode()
    alone.nodes = [Node(id="m2", parent=None, message=alone.nodes[2].message, sampled=True)]
    assert drop_reason(make(), alone) == "no sample: no prompt before the first turn"


def test_a_turn_that_the_dialect_cannot_say_is_not_trained_wrongly(make: Any) -> None:
    """The text dialect has no block for this tool: rendered, the arguments would be lost."""
    foreign = episode()
    call = Call(id="read-1", name="browse", arguments={"url": "http://x"}, raw='{"url": "http://x"}')
    foreign.nodes[2].message = Message(role="assistant", parts=(call,))
    assert drop_reason(make(), foreign) == "no sample: rendered turn reads back with other text"
