"""Each invariant has a trajectory that breaks it, and a sound one is silent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inloop.trace.check import check, check_all
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Message, Text, message


class Letters:
    """A tokenizer of one token a character."""

    def decode(self, token_ids: list[int], **_: Any) -> str:
        return "".join(chr(i) for i in token_ids)

    def encode(self, text: str, **_: Any) -> list[int]:
        return [ord(c) for c in text]


def sound() -> Trajectory:
    call = Call(id="c", name="bash", arguments={}, raw="{}")
    say = Message(role="assistant", parts=(Text(text="ok"), call))
    ids = Letters().encode("ok<call>{}")
    return Trajectory(
        id="t",
        nodes=[
            Node(id="u", parent=None, message=message("user", "go")),
            Node(id="a", parent="u", message=say, sampled=True, token_ids=ids, logprobs=[-0.5] * len(ids)),
            Node(id="r", parent="a", message=message("tool", "", call_id="c")),
            Node(id="b", parent="r", message=message("assistant", "done"), sampled=True),
        ],
    )


def codes(trajectory: Trajectory) -> set[str]:
    return {f.code for f in check(trajectory, row=7, tokenizer=Letters())}


def test_a_sound_one_is_silent() -> None:
    assert codes(sound()) == set()


def test_findings_name_their_place() -> None:
    broken = sound()
    broken.nodes[1].logprobs = [-0.5]
    (finding,) = check(broken, row=7)
    assert (finding.trajectory, finding.row, finding.node, finding.level) == ("t", 7, "a", "error")


@pytest.mark.parametrize(
    ("node", "change", "code"),
    [
        (1, {"logprobs": [-0.5]}, "logprobs_length"),
        (1, {"logprobs": [-0.5] * 9 + [float("nan")]}, "logprobs_range"),
        (1, {"logprobs": [-0.5] * 9 + [0.1]}, "logprobs_range"),
        (1, {"token_ids": [ord("x")] * 10}, "decode"),
        (1, {"token_ids": [-1] * 10}, "token_ids"),
        (1, {"untrained": [(0, 99)]}, "untrained"),
        (1, {"untrained": [(2, 3), (0, 1)]}, "untrained"),
        (1, {"untrained_ids": [(5, 11)]}, "untrained_ids"),
        (1, {"message": message("assistant", "ok")}, "orphan_result"),
        (2, {"message": message("tool", "", call_id="other")}, "missing_result"),
        (2, {"sampled": True}, "sampled_role"),
        (2, {"parent": "nowhere"}, "parent"),
        (3, {"id": "a"}, "node_twice"),
    ],
)
def test_each_break_is_found(node: int, change: dict[str, Any], code: str) -> None:
    broken = sound()
    broken.nodes[node] = replace(broken.nodes[node], **change)
    assert code in codes(broken)


def test_a_message_sampled_twice_is_found() -> None:
    broken = sound()
    broken.nodes.append(replace(broken.nodes[3], id="c"))
    assert codes(broken) == {"sampled_twice"}


def test_a_fork_shares_the_call_and_both_answer_it() -> None:
    fork = sound()
    fork.nodes.append(Node(id="r2", parent="a", message=message("tool", "other", call_id="c")))
    assert codes(fork) == set()


def test_the_last_turns_call_may_stay_open() -> None:
    cut = sound()
    del cut.nodes[2:]
    assert codes(cut) == set()


def test_the_same_id_in_two_rows() -> None:
    assert [f.code for f in check_all([sound(), sound()])] == ["id_twice"]


def test_nothing_is_a_finding() -> None:
    assert codes(Trajectory(id="t")) == {"empty"}
