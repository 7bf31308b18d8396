"""Scripts in both forms."""

from __future__ import annotations

from typing import Any

import pytest

from inloop.engine.base import ContextFull, Sampling
from inloop.engine.scripted import ScriptedChat, ScriptedEngine
from inloop.errors import EngineFault
from inloop.types import Call, Message, message


def test_each_conversation_hears_the_script_from_its_start(tiny_tokenizer: Any) -> None:
    engine = ScriptedEngine(["one", "two"], tiny_tokenizer)
    for name in ("a", "b"):
        first = engine.generate([5], Sampling(), conversation=name)
        assert tiny_tokenizer.decode(first.token_ids) == "one<|im_end|>"
        assert first.logprobs == [0.0] * len(first.token_ids) and first.finish == "stop"
    assert tiny_tokenizer.decode(engine.generate([5], Sampling(), conversation="a").token_ids).startswith("two")
    with pytest.raises(EngineFault, match="2 replies"):
        engine.generate([5], Sampling(), conversation="a")
    engine.forget("a")
    assert tiny_tokenizer.decode(engine.generate([5], Sampling(), conversation="a").token_ids).startswith("one")


def test_limits_hold_for_scripts_too(tiny_tokenizer: Any) -> None:
    engine = ScriptedEngine(lambda turn, prompt: f"{turn}:{prompt}" * 20, tiny_tokenizer, max_model_len=30)
    prompt = tiny_tokenizer.encode("hello")
    cut = engine.generate(prompt, Sampling(max_tokens=4))
    assert (len(cut.token_ids), cut.finish) == (4, "length")
    assert len(engine.generate(prompt, Sampling(max_tokens=400)).token_ids) == 30 - len(prompt)
    with pytest.raises(ContextFull):
        engine.generate([5] * 30, Sampling())


def test_versions_follow_a_rehearsed_hand_over(tiny_tokenizer: Any) -> None:
    engine = ScriptedEngine(["a"], tiny_tokenizer)
    engine.load_weights([("w", None)], 3)
    assert engine.info().weight_version == 3 == engine.generate([5], Sampling()).weight_version


def test_chat_counts_its_own_turns() -> None:
    call = Message(role="assistant", parts=(Call(id="1", name="bash", arguments={}, raw="{}"),))
    chat = ScriptedChat(["look", call])
    first = chat.chat([message("user", "go")], [], Sampling())
    assert first.message.text == "look" and first.finish == "stop"
    second = chat.chat([message("user", "go"), first.message], [], Sampling())
    assert second.message is call and second.finish == "tool_calls"
    with pytest.raises(EngineFault):
        chat.chat([first.message, second.message], [], Sampling())
    assert (
        ScriptedChat(lambda turn, prompt: f"{turn} {prompt}").chat([message("user", "x")], [], Sampling()).message.text
        == "0 x"
    )
