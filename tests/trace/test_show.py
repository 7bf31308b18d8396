"""What a hostile trace prints is text."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from inloop.trace.show import Look, clip, render, visible
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Image, Message, Text, Thinking, message


def printed(trajectory: Trajectory) -> str:
    out = io.StringIO()
    Console(file=out, width=100, force_terminal=False).print(render(trajectory))
    return out.getvalue()


def test_a_fork_shows_the_shared_part_once() -> None:
    nodes = [Node(id="u", parent=None, message=message("user", "the question"))]
    nodes += [Node(id=i, parent="u", message=message("assistant", f"answer {i}"), sampled=True) for i in "ab"]
    text = printed(Trajectory(id="t", nodes=nodes))
    assert text.count("the question") == 1
    assert "answer a" in text and "answer b" in text and "after 1 shared messages" in text


def test_markup_and_terminal_sequences_are_not_interpreted() -> None:
    hostile = "[red]x[/red] \x1b[2J\x1b]0;owned\x07 \x1b]52;c;ZXZpbA==\x1b\\ \r overwritten \u202eright to left \x9b31m"
    parts = (
        Text(text=hostile), Thinking(text=hostile), Thinking(text="", hidden=True),
        Call(id=hostile, name=hostile, arguments=None, raw=hostile), Image(sha256="0" * 64, media_type=hostile),
    )  # fmt: skip
    node = Node(id=hostile, parent=None, message=Message(role="tool", parts=parts, call_id=hostile, origin=hostile))
    other = Node(id="x", parent=hostile, message=message("user", "a"))
    last = Node(id="y", parent=hostile, message=message("user", "b"))
    text = printed(Trajectory(id=hostile, nodes=[node, other, last], agent={"name": hostile}, model=hostile))
    assert "[red]x[/red]" in text and "owned" not in text and "ZXZpbA" not in text
    assert not [c for c in text if ord(c) < 32 and c != "\n"] and "\x9b" not in text and "\u202e" not in text


@given(st.text())
def test_no_control_character_survives(text: str) -> None:
    assert not [c for c in visible(text) if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0]


def test_long_texts_say_what_was_cut() -> None:
    assert clip("x" * 300, Look(line=10)) == "x" * 10 + "… (+290)"
    assert clip("\n".join(map(str, range(100))), Look(lines=4)) == "0\n1\n… 96 lines …\n98\n99"
