"""The chat engine against our own server, and what it makes of refusals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from engine.chat_server import in_order, reply, served

from inloop.engine.base import ContextFull, Sampling
from inloop.engine.chat import ChatApi, from_wire, to_wire
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.server import EngineServer
from inloop.errors import EngineFault, InloopError
from inloop.types import Call, Image, Message, Text, Thinking, message

pytestmark = pytest.mark.xdist_group("engine")


@pytest.fixture(scope="module")
def server(shared_engine: EmbeddedEngine) -> Iterator[EngineServer]:
    with EngineServer(shared_engine, token="secret") as running:
        yield running


def test_a_conversation_with_our_own_server(server: EngineServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "secret")
    api = ChatApi(server_model(server), url=f"{server.url}/v1", key_variable="TEST_KEY")
    messages = [message("user", "hello")]
    for turn in range(2):
        reply = api.chat(messages, [], Sampling(max_tokens=6, seed=turn))
        assert reply.message.role == "assistant" and reply.finish in ("stop", "length")
        assert 0 < reply.usage["completion_tokens"] <= 6
        messages += [reply.message, message("user", "again")]
    with pytest.raises(ContextFull):
        api.chat([message("user", "x" * 900)], [], Sampling())
    assert not api.info().trainable
    api.close()


def server_model(server: EngineServer) -> str:
    import httpx

    got = httpx.get(f"{server.url}/v1/models", headers={"Authorization": "Bearer secret"}, trust_env=False)
    name: str = got.json()["data"][0]["id"]
    return name


def test_wrong_key_and_wrong_model(server: EngineServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "hunter2")
    api = ChatApi("m", url=f"{server.url}/v1", key_variable="TEST_KEY")
    with pytest.raises(InloopError, match="TEST_KEY") as refused:
        api.chat([message("user", "a")], [], Sampling())
    assert "hunter2" not in str(refused.value)
    api.close()
    monkeypatch.setenv("TEST_KEY", "secret")
    api = ChatApi("no-such-model", url=f"{server.url}/v1", key_variable="TEST_KEY")
    with pytest.raises(InloopError, match="no-such-model"):
        api.chat([message("user", "a")], [], Sampling())
    api.close()


def test_a_missing_key_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InloopError, match="OPENAI_API_KEY"):
        ChatApi("gpt-x")


def test_busy_servers_are_asked_again_and_broken_ones_are_faults() -> None:
    busy = {"error": {"message": "slow down"}}
    with served(in_order((429, busy), (503, busy), (200, reply(content="done")))) as (url, asked):
        api = ChatApi("m", url=url)
        assert api.chat([message("user", "a")], [], Sampling()).message.text == "done"
        assert len(asked) == 3
        api.close()
    with served(in_order((500, busy))) as (url, asked):
        api = ChatApi("m", url=url, retries=1)
        with pytest.raises(EngineFault, match="slow down"):
            api.chat([message("user", "a")], [], Sampling())
        assert len(asked) == 2
        api.close()


def test_calls_and_thinking_travel_both_ways() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
        {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": '{"command'}},
    ]
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
    with served(in_order((200, reply(content="so", reasoning_content="hm", tool_calls=calls)))) as (url, asked):
        api = ChatApi("m", url=url)
        got = api.chat([message("system", "s"), message("user", "u")], tools, Sampling(seed=4, temperature=0.2))
        api.close()
    assert asked[0]["tools"] == tools and asked[0]["seed"] == 4 and asked[0]["temperature"] == 0.2
    assert got.message.parts == (
        Thinking(text="hm"),
        Text(text="so"),
        Call(id="c1", name="bash", arguments={"command": "ls"}, raw='{"command": "ls"}'),
        Call(id="c2", name="bash", arguments=None, raw='{"command'),
    )
    wire = to_wire(got.message)
    assert wire["tool_calls"] == calls and from_wire(wire).calls == got.message.calls
    assert to_wire(message("tool", "out", call_id="c1")) == {"role": "tool", "content": "out", "tool_call_id": "c1"}
    with pytest.raises(InloopError):
        to_wire(Message(role="user", parts=(Image(sha256="0", media_type="image/png"),)))
