"""TRL's own `assistant_only_loss` on the same conversations: the same trained tokens, or a difference that
docs/masking.md names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from data_stage import peers

from inloop.data.builder import Builder
from inloop.data.sample import MASKED
from inloop.harness.native import NativeDialect, training_template
from inloop.harness.text import TextDialect
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Message, Text, Thinking, message

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


def trl_labels(
    tokenizer: Any, chat: list[dict[str, Any]], tools: Sequence[Any], out: Path
) -> tuple[list[int], list[int]]:
    """(input_ids, labels) as SFTTrainer prepares them with assistant_only_loss."""
    from datasets import Dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import SFTConfig, SFTTrainer

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    row: dict[str, Any] = {"messages": chat}
    if tools:
        row["tools"] = json.dumps(list(tools))
    arguments = SFTConfig(
        output_dir=str(out), assistant_only_loss=True, max_length=None, bf16=False, use_cpu=True, report_to="none"
    )
    trainer = SFTTrainer(
        model=LlamaForCausalLM(config),
        args=arguments,
        train_dataset=Dataset.from_list([row], on_mixed_types="use_json"),
        processing_class=tokenizer,
    )
    prepared = trainer.train_dataset[0]
    return prepared["input_ids"], prepared["labels"]


def ours(messages: list[Message], dialect: Any, tokenizer: Any) -> tuple[list[int], list[int]]:
    nodes = [
        Node(id=f"m{i}", parent=f"m{i - 1}" if i else None, message=m, sampled=m.role == "assistant")
        for i, m in enumerate(messages)
    ]
    builder = Builder(tokenizer=tokenizer, stop_ids=dialect.stop_token_ids, encoder=lambda t: dialect)
    (sample,) = builder.take(Trajectory(id="t", nodes=nodes))
    return sample.input_ids, sample.labels


def to_chat(m: Message) -> dict[str, Any]:
    out: dict[str, Any] = {"role": m.role, "content": m.text}
    if thought := "".join(p.text for p in m.parts if isinstance(p, Thinking)):
        out["reasoning_content"] = thought
    if m.calls:
        out["tool_calls"] = [
            {"type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in m.calls
        ]
    return out


def assistant(*parts: Any) -> Message:
    return Message(role="assistant", parts=parts)


def test_qwen3_with_thinking_and_tools(tmp_path: Path) -> None:
    tokenizer = peers.qwen3()
    call = Call(id="bash-1", name="bash", arguments={"command": "cat calc.py"}, raw="")
    messages = [
        message("system", "You mend code."),
        message("user", "add is wrong"),
        assistant(Thinking(text="Look first."), Text(text="I read it."), call),
        message("tool", "def add(a, b):\n    return a - b", call_id="bash-1"),
        assistant(Text(text="It subtracts.")),
        message("user", "Mend it."),
        assistant(Thinking(text="Plus."), Text(text="Done: a + b")),
    ]
    dialect = NativeDialect(tokenizer, (), source=training_template(tokenizer), thinking=True, shown=[TOOL])
    ids, labels = ours(messages, dialect, tokenizer)
    theirs, their_labels = trl_labels(tokenizer, [to_chat(m) for m in messages], [TOOL], tmp_path)
    newline = tokenizer.encode("\n", add_special_tokens=False)
    assert ids + newline == theirs, "the template's newline after the last turn is never sampled, and not in our sample"
    extra = [i for i, (a, b) in enumerate(zip([*labels, MASKED], their_labels, strict=True)) if a != b]
    assert [theirs[i] for i in extra] == newline * 3, (
        "TRL trains the newline after each stop token, which nobody samples"
    )
    assert all(theirs[i - 1] == tokenizer.eos_token_id for i in extra)
    assert sum(x != MASKED for x in labels) == sum(x != MASKED for x in their_labels) - 3 > 0


def test_llama3(tmp_path: Path) -> None:
    tokenizer = peers.llama3()
    messages = [
        message("system", "You mend code."),
        message("user", "add is wrong"),
        assistant(Text(text="It subtracts:\n  a - b")),
        message("user", "Mend it."),
        assistant(Text(text="a + b")),
    ]
    ids, labels = ours(messages, TextDialect(tokenizer, ()), tokenizer)
    theirs, their_labels = trl_labels(tokenizer, [to_chat(m) for m in messages], [], tmp_path)
    assert ids == theirs and labels == their_labels
    assert tokenizer.decode([x for x in labels if x != MASKED]) == "It subtracts:\n  a - b<|eot_id|>a + b<|eot_id|>"
