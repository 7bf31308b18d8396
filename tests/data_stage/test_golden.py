"""The trained text of the sample traces, character by character, and what the edge cases become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from data_stage import peers

from inloop.data.audit import audit
from inloop.data.builder import Builder
from inloop.data.mask import MaskConfig
from inloop.data.pipeline import encoders
from inloop.data.sample import MASKED, Header, Sample
from inloop.data.tokens import opening_ids
from inloop.harness.config import HarnessConfig
from inloop.harness.dialect import make_dialect
from inloop.trace.read import chat
from inloop.trace.read.place import Place
from inloop.trace.trajectory import Trajectory

SAMPLES = Path(__file__).parents[1] / "data" / "samples_chat"
THOUGHT = "<think>\nRead the source and the test before touching anything.\n</think>\n\n"
EMPTY = "<think>\n\n</think>\n\n"
TURNS = [
    "I'll read the source and the failing test.\n"
    '<tool_call>\n{"name": "bash", "arguments": {"command": "cat calc.py"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "bash", "arguments": {"command": "cat tests/test_calc.py"}}\n</tool_call><|im_end|>',
    "The operator is wrong.\n"
    '<tool_call>\n{"name": "bash", "arguments": '
    '{"command": "sed -i \'s/a - b/a + b/\' calc.py"}}\n</tool_call><|im_end|>',
    '<tool_call>\n{"name": "bash", "arguments": {"command": "pytest -q"}}\n</tool_call><|im_end|>',
    "Fixed: add() now adds, and the test passes.<|im_end|>",
]
EXPECTED = [THOUGHT + TURNS[0], EMPTY + TURNS[1], EMPTY + TURNS[2], EMPTY + TURNS[3]]


@pytest.fixture(scope="module")
def qwen() -> Any:
    return peers.qwen3()


def read(name: str, tmp_path: Path) -> Trajectory:
    file = SAMPLES / name
    place = Place(str(file), 1, images=tmp_path)
    return chat.read(json.loads(file.read_text(encoding="utf-8").splitlines()[0]), place)


def builder(tokenizer: Any, config: MaskConfig | None = None) -> Builder:
    harness = HarnessConfig(dialect="native")
    dialect = make_dialect(harness, tokenizer)
    return Builder(
        tokenizer=tokenizer,
        stop_ids=dialect.stop_token_ids,
        encoder=encoders(dialect, tokenizer, harness),
        config=config or MaskConfig(),
    )


def runs(sample: Sample, tokenizer: Any) -> list[str]:
    out: list[list[int]] = [[]]
    for label in sample.labels:
        if label == MASKED:
            out.append([])
        else:
            out[-1].append(label)
    return [tokenizer.decode(run) for run in out if run]


@pytest.mark.parametrize("name", ["trl.jsonl", "openai.jsonl"])
def test_trained_text(name: str, qwen: Any, tmp_path: Path) -> None:
    make = builder(qwen)
    (sample,) = make.take(read(name, tmp_path))
    assert runs(sample, qwen) == EXPECTED
    whole = qwen.decode(sample.input_ids)
    assert "<tool_response>\ndef add(a, b):\n    return a - b\n\n</tool_response>\n<tool_response>\nfrom calc" in whole
    assert whole.startswith("<|im_start|>system\nYou are a coding agent working in /work/calc.\n\n# Tools\n\n")
    assert make.drops.trained == 4
    make.drops.trajectories = 1
    header = Header(stop_ids=tuple(make.stop_ids))
    assert audit([sample], header, vocabulary=len(qwen), drops=make.drops).ok


def test_options_on_the_same_trace(qwen: Any, tmp_path: Path) -> None:
    def texts(**kw: Any) -> list[str]:
        (sample,) = builder(qwen, MaskConfig(**kw)).take(read("trl.jsonl", tmp_path))
        return runs(sample, qwen)

    assert texts(turns="last") == EXPECTED[-1:]
    assert texts(thinking=False) == TURNS


def test_edge_cases(qwen: Any, tmp_path: Path) -> None:
    cut = builder(qwen)
    (sample,) = cut.take(read("chat_ends_on_tool_result.jsonl", tmp_path))
    assert sample.spans[-1].sampled and runs(sample, qwen)[-1].endswith("</tool_call><|im_end|>")
    malformed = builder(qwen)
    malformed.take(read("chat_malformed_arguments.jsonl", tmp_path))
    missing = builder(qwen)
    missing.take(read("chat_missing_tool_result.jsonl", tmp_path))
    assert sum(missing.drops.untrained.values()) == 1 and "a call without a result" in missing.drops.untrained
    assert malformed.drops.messages == malformed.drops.trained + sum(malformed.drops.untrained.values())
    assert malformed.drops.untrained


def test_a_template_that_drops_thinking_is_refused(tmp_path: Path) -> None:
    """Qwen3's own template forgets the thinking of earlier turns; with one comment added, no variant of it is known."""
    tokenizer = peers.qwen3()
    tokenizer.response_template = make_response_template()
    tokenizer.chat_template = "{# ours #}" + tokenizer.chat_template
    from inloop.harness.native import NativeDialect

    trace = read("trl.jsonl", tmp_path)
    dialect = NativeDialect(tokenizer, (), thinking=True, shown=trace.tools)
    make = Builder(tokenizer=tokenizer, stop_ids=dialect.stop_token_ids, encoder=lambda t: dialect)
    assert make.take(trace) == []
    assert list(make.drops.reasons("sample")) == ["the template renders earlier turns differently later"]


def make_response_template() -> Any:
    from trl.chat_template_utils import add_response_schema

    return add_response_schema(peers.qwen3()).response_template


def test_opening_of_every_turn(qwen: Any) -> None:
    dialect = make_dialect(HarnessConfig(dialect="native"), qwen)
    assert qwen.decode(opening_ids(dialect)).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
