"""What a client sends is rendered as it was in training, and what the model says is read as it was in training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from serve.conftest import NATIVE, TEXT

from inloop.engine.bodies import ApiError
from inloop.harness.tools import schemas
from inloop.serve.form import TrainedFormat
from inloop.types import message

SYSTEM = {"role": "system", "content": "Be brief."}
ASK = {"role": "user", "content": "calc.py: add is wrong."}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"properties": {"city": {}}}}}


@pytest.fixture(scope="module")
def text(tiny_model: Path) -> TrainedFormat:
    return TrainedFormat(tiny_model, TEXT, context=2048)


@pytest.fixture(scope="module")
def native_form(native: Path) -> TrainedFormat:
    return TrainedFormat(native, NATIVE, context=2048)


def said(form: TrainedFormat, text: str, prompt: list[int], tools: Any = None) -> dict[str, Any]:
    """A sampled turn as the server answers it."""
    ids = [*form.encode(text), form.stop_id]
    answer = form.message(prompt, ids, tools)
    form.remember(prompt, ids, answer)
    return answer


def test_a_conversation_is_the_harness_own_stream(text: TrainedFormat) -> None:
    dialect, tools = text.dialect, schemas(TEXT.tools)
    head = {"role": "system", "content": dialect.system(TEXT.tools, "Be brief.")}
    stream = dialect.open([message("system", head["content"]), message("user", ASK["content"])])
    assert text.render([head, ASK], None, open_turn=True) == stream
    assert text.render([head, ASK], tools, open_turn=True) == stream
    assert text.render([SYSTEM, ASK], tools, open_turn=True) == stream
    turn = "I look.\n```read calc.py```"
    answer = said(text, turn, stream, tools)
    [call] = answer["tool_calls"]
    assert answer["content"] == "I look.\n" and json.loads(call["function"]["arguments"]) == {"path": "calc.py"}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "def add(a, b): ...<|im_end|>"}
    got = text.render([SYSTEM, ASK, answer, result], tools, open_turn=True)
    shown = message("user", dialect.neutral(result["content"]))
    assert got == stream + text.encode(turn) + [text.stop_id] + dialect.extend(True, [shown])


def test_turns_sampled_here_keep_their_own_ids(text: TrainedFormat) -> None:
    """A model may write a word in other tokens than the tokenizer would."""
    prompt = text.render([ASK], None, open_turn=True)
    odd = [i for letter in "return" for i in text.encode(letter)]
    assert odd != text.encode("return")
    answer = text.message(prompt, [*odd, text.stop_id], None)
    again = [ASK, {"role": "assistant", "content": answer["content"]}, {"role": "user", "content": "go on"}]
    before = text.render(again, None, open_turn=True)
    assert before[len(prompt) : len(prompt) + 1] == text.encode("return")[:1]
    text.remember(prompt, [*odd, text.stop_id], answer)
    got = text.render(again, None, open_turn=True)
    assert got[: len(prompt) + len(odd)] == prompt + odd


def test_tools_of_the_request_are_written_as_json_blocks(text: TrainedFormat) -> None:
    shown = text.decode(text.render([ASK], [WEATHER], open_turn=True))
    assert "```weather" in shown and '"city"' in shown
    answer = text.message([], [*text.encode('```weather\n{"city": "Oslo"}\n```'), text.stop_id], [WEATHER])
    assert json.loads(answer["tool_calls"][0]["function"]["arguments"]) == {"city": "Oslo"}
    torn = text.message([], [*text.encode('```weather\n{"city": \n```'), text.stop_id], [WEATHER])
    assert "tool_calls" not in torn and torn["content"].startswith("```weather")


def test_native_calls_by_the_models_own_template(native_form: TrainedFormat) -> None:
    form = native_form
    tools = form.dialect.schemas()
    prompt = form.render([SYSTEM, ASK], tools, open_turn=True)
    stream = form.dialect.open([message("system", "Be brief."), message("user", ASK["content"])])
    assert prompt == stream and "<tools>" in form.decode(prompt)
    turn = 'Look.\n<tool_call>\n{"name": "read", "arguments": {"path": "calc.py"}}\n</tool_call>'
    answer = said(form, turn, prompt, tools)
    assert answer["tool_calls"][0]["function"]["name"] == "read"
    result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "text"}
    got = form.render([SYSTEM, ASK, answer, result], tools, open_turn=True)
    extended = form.dialect.extend(True, [message("tool", "text", call_id="read-1")])
    assert got == prompt + form.encode(turn) + [form.stop_id] + extended
    elsewhere = {**answer, "tool_calls": [{**answer["tool_calls"][0], "id": "call_1"}], "content": "Look. "}
    told = form.decode(
        form.render([SYSTEM, ASK, elsewhere, {**result, "tool_call_id": "call_1"}], tools, open_turn=True)
    )
    assert told.count("<tool_call>") == form.decode(got).count("<tool_call>") and "Look." in told
    other = form.decode(form.render([SYSTEM, ASK], [WEATHER], open_turn=True))
    assert "weather" in other and '"submit"' not in other


def test_a_call_that_cant_be_read_stays_text(native_form: TrainedFormat) -> None:
    ids = [*native_form.encode('<tool_call>\n{"name": "read", "arg\n</tool_call>'), native_form.stop_id]
    answer = native_form.message([], ids, native_form.dialect.schemas())
    assert "tool_calls" not in answer and "<tool_call>" in answer["content"]


BAD: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "assistant last": ([ASK, {"role": "assistant", "content": "a"}], {}, "last message"),
    "two in a row": ([ASK, *[{"role": "assistant", "content": "a"}] * 2, ASK], {}, "in a row"),
    "unknown role": ([{"role": "wizard", "content": "a"}], {}, "unknown role"),
    "another template variable": ([ASK], {"enable_thinking": True}, "enable_thinking"),
    "surely too long": ([{"role": "user", "content": "x" * 400_000}], {}, "maximum context"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_can_not_be_rendered(text: TrainedFormat, name: str) -> None:
    messages, options, says = BAD[name]
    with pytest.raises(ApiError, match=says):
        text.render(messages, None, open_turn=True, **options)
