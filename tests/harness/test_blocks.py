from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inloop.harness.blocks import read_turn, write_call, write_turn
from inloop.harness.config import TOOLS
from inloop.types import Call, Message, Text, Thinking


def only_call(text: str, *, ended: bool = True) -> Call:
    (call,) = read_turn(text, TOOLS, ended=ended).all_calls
    return call


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("```read slug.py```", "read", {"path": "slug.py"}),
        ("```read slug.py\n```", "read", {"path": "slug.py"}),
        ("```read slug.py", "read", {"path": "slug.py"}),
        ("```read a b/slug.py 3-40```", "read", {"path": "a b/slug.py", "start": 3, "end": 40}),
        ("```test```", "test", {}),
        ("```test", "test", {}),
        ("```submit\n```\n", "submit", {}),
        ("I look first.\n```read x.py```\nthen more", "read", {"path": "x.py"}),
        ("```bash\nls\necho a\n```", "bash", {"command": "ls\necho a"}),
        ("```bash ls -la\n```", "bash", {"command": "ls -la"}),
        ("```sh\nls\n```", "bash", {"command": "ls"}),
        ("```edit s.py\n    a\n=======\n    b\n```", "edit", {"path": "s.py", "old": "    a", "new": "    b"}),
        ("```edit s.py\na\nb\n=======\n```", "edit", {"path": "s.py", "old": "a\nb", "new": ""}),
        ("```edit s.py\na\n=======\nb\nc", "edit", {"path": "s.py", "old": "a", "new": "b\nc"}),
        (
            "```edit d.rst\nT\n=======\n========\nU\n=======\n```",
            "edit",
            {"path": "d.rst", "old": "T\n=======", "new": "U\n======="},
        ),
        ("```write n.py\nx = 1\n\ny = 2\n```", "write", {"path": "n.py", "content": "x = 1\n\ny = 2\n"}),
        ("```write n.py\n```", "write", {"path": "n.py", "content": ""}),
        ("````write r.md\n```python\n1\n```\n````", "write", {"path": "r.md", "content": "```python\n1\n```\n"}),
        ("```python\nprint(1)\n```\n```test```", "test", {}),
        ("```test```\n```submit```", "test", {}),
        ("<think>\n```submit```\n</think>\n\n```test```", "test", {}),
    ],
)
def test_what_models_write_is_understood(text: str, name: str, arguments: dict[str, Any]) -> None:
    call = only_call(text)
    assert (call.name, call.arguments) == (name, arguments)
    assert call.embedded


@pytest.mark.parametrize(
    "text",
    [
        "```edit s.py\na\nb\n```", "```edit\na\n=======\nb\n```", "```read```", "```write\nx\n```", "```bash\n```",
        "```edit s.py\na\n=======\nb\n=======\nc\n```",
    ],
)  # fmt: skip
def test_a_block_that_can_not_be_read_is_a_call_without_arguments(text: str) -> None:
    assert only_call(text).arguments is None


@pytest.mark.parametrize(
    "text", ["", "hello", "```", "```python\n1\n```", "see `test`", "a ```fly x``` b", "<think>\n```test```"]
)
def test_no_call_in_plain_words(text: str) -> None:
    assert read_turn(text, TOOLS).all_calls == ()


def test_a_tool_that_is_switched_off_is_no_call() -> None:
    assert read_turn("```bash\nls\n```", ("read", "submit")).all_calls == ()


def test_a_block_that_was_cut_off_is_not_run() -> None:
    text = "```write s.py\nx = 1\ny ="
    assert only_call(text, ended=False).arguments is None
    assert only_call(text, ended=True).arguments == {"path": "s.py", "content": "x = 1\ny =\n"}
    assert only_call("```bash\nls\n```\nand so", ended=False).arguments == {"command": "ls"}


WORDS = st.text(alphabet="ab=` \n\t#'é{", max_size=40)


@given(
    st.lists(st.sampled_from(["```", "test", "edit a.py", "\n", "=======", "x", "````", "<think>", "</think>", " "]))
)
def test_the_parts_are_the_text_again(pieces: list[str]) -> None:
    text = "".join(pieces)
    said = read_turn(text, TOOLS)
    if not any(isinstance(p, Thinking) for p in said.parts):
        assert said.text == text
        assert write_turn(said) == text


@given(old=WORDS.filter(lambda t: t != ""), new=WORDS.filter(lambda t: t != "\n"))
def test_an_edit_survives_being_written_and_read(old: str, new: str) -> None:
    call = only_call(write_call("edit", {"path": "a.py", "old": old, "new": new}))
    assert call.arguments == {"path": "a.py", "old": old, "new": new}


@given(WORDS.filter(lambda t: t.strip("\n")))
def test_commands_and_files_survive(body: str) -> None:
    content = body if body.endswith("\n") else body + "\n"
    assert only_call(write_call("write", {"path": "x", "content": content})).arguments == {
        "path": "x",
        "content": content,
    }
    command = body.strip("\n")
    if command.strip():
        assert only_call(write_call("bash", {"command": command})).arguments == {"command": command}


def test_a_foreign_turn_is_written_as_a_block_on_its_own_line() -> None:
    call = Call(id="toolu_1", name="read", arguments={"path": "a.py"}, raw='{"path": "a.py"}')
    said = Message(role="assistant", parts=(Thinking(text="hm"), Text(text="I look."), call))
    text = write_turn(said)
    assert text == "<think>\nhm\n</think>\n\nI look.\n```read a.py```"
    back = read_turn(text, TOOLS)
    assert back.all_calls[0].arguments == call.arguments
    assert [p.text for p in back.parts if isinstance(p, Thinking)] == ["hm"]


def test_a_call_of_another_harness_is_shown_but_not_read_as_ours() -> None:
    call = Call(id="1", name="str_replace_editor", arguments={"x": 1}, raw='{"x": 1}')
    text = write_turn(Message(role="assistant", parts=(call,)))
    assert '{"x": 1}' in text
    assert read_turn(text, TOOLS).all_calls == ()
