"""`/v1/responses` by the `openai` client: items, events, and conversations that go on by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from inloop.serve.server import Running

pytestmark = [pytest.mark.xdist_group("serve"), pytest.mark.filterwarnings("ignore::FutureWarning")]

READ = {"type": "function", "name": "read", "description": "Show a file.", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def api(server: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.token, max_retries=0) as client:
        yield client


def test_whole_and_streamed_say_the_same(api: openai.OpenAI, server: Running) -> None:
    asked: dict[str, Any] = {"model": server.model, "input": "hello", "instructions": "Be brief.",
                             "max_output_tokens": 9, "extra_body": {"seed": 3}}  # fmt: skip
    whole = api.responses.create(**asked)
    assert whole.status == "incomplete" and whole.incomplete_details and whole.usage
    assert whole.usage.output_tokens == 9 and whole.instructions == "Be brief."
    events = list(api.responses.create(**asked, stream=True))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == whole.output_text
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type == "response.incomplete"
    assert events[-1].response.output_text == whole.output_text


def test_calls_and_their_results(api: openai.OpenAI, server: Running) -> None:
    """The same conversation by items, by id, and as chat completions: one prompt."""
    form = server.serving.form
    ask = [{"role": "user", "content": "What is in a.py?"}]
    chat = api.chat.completions.create(
        model=server.model, messages=ask, tools=[{"type": "function", "function": {"name": "read"}}],
        extra_body={"structured_outputs": {"choice": ["I look.\n```read a.py```"]}},
    )  # fmt: skip
    call = chat.choices[0].message.tool_calls[0]
    items = [
        *ask,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look.\n"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": call.id, "name": "read", "arguments": call.function.arguments},
        {"type": "function_call_output", "call_id": call.id, "output": [{"type": "input_text", "text": "x = 1"}]},
    ]
    got = api.responses.create(model=server.model, input=items, tools=[READ], max_output_tokens=4)
    messages = [
        *ask,
        chat.choices[0].message.model_dump(),
        {"role": "tool", "tool_call_id": call.id, "content": "x = 1"},
    ]
    tools = [{"type": "function", "function": {"name": "read"}}]
    assert got.usage.input_tokens == len(form.render(messages, tools, open_turn=True))
    later = api.responses.create(
        model=server.model, input="go on", previous_response_id=got.id, tools=[READ], max_output_tokens=4
    )
    assert later.usage.input_tokens > got.usage.input_tokens and later.previous_response_id == got.id


def test_a_call_as_events(api: openai.OpenAI, server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every item is added and done, and its pieces make the whole."""
    from inloop.serve.responses import _whole_item
    from inloop.serve.responses_body import items_of

    call = {"id": "read-1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    items = items_of({"content": "I look.", "reasoning_content": "hm", "tool_calls": [call]})
    assert [i["type"] for i in items] == ["reasoning", "message", "function_call"]
    for index, item in enumerate(items):
        events = _whole_item(item, index)
        assert events[0]["type"] == "response.output_item.added" and events[-1]["item"] == item
    told = api.responses.create(model=server.model, input="a", tools=[READ], max_output_tokens=5, stream=True)
    assert [e.type for e in told][-1] == "response.incomplete"


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a built-in tool": ({"input": "a", "tools": [{"type": "web_search"}]}, "only functions"),
    "an image": ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "has to be text"),
    "json mode": ({"input": "a", "text": {"format": {"type": "json_object"}}}, "text only"),
    "nothing": ({"input": []}, "empty"),
    "an unknown item": ({"input": [{"type": "computer_call"}]}, "computer_call"),
    "no such response": ({"input": "a", "previous_response_id": "resp_1"}, "resp_1"),
    "another model": ({"input": "a", "model": "gpt-9"}, "gpt-9"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_the_standard_shape(api: openai.OpenAI, server: Running, name: str) -> None:
    body, says = MISTAKES[name]
    with pytest.raises(openai.APIStatusError, match=says) as error:
        api.responses.create(**{"model": server.model, **body})
    assert error.value.status_code in (400, 404) and error.value.type == "invalid_request_error"
