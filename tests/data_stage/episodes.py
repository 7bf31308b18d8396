"""Episodes as the harness would record them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inloop.harness.text import TextDialect
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Message, Reward, StopReason, Text, Verdict, message

TOOLS = ("bash", "read", "edit", "test", "submit")


def turn(text: str, call: str, call_id: str, **arguments: Any) -> Message:
    parts = [Text(text=text)] if text else []
    return Message(role="assistant", parts=(*parts, Call(id=call_id, name=call, arguments=arguments, raw="")))


def result(text: str, call_id: str, *, error: bool = False) -> Message:
    return message("tool", text, call_id=call_id, is_error=error)


def episode(
    name: str = "t0", *, bug: str = "a - b", task: str | None = None, extra: Sequence[Message] = ()
) -> Trajectory:
    """Read, a wrong edit, a failing test, the right edit, a passing test, submit."""
    said = [
        message("system", "Fix the code."),
        message("user", f"add is wrong: {bug}"),
        turn("Look.\n", "read", "read-1", path="calc.py"),
        result(f"def add(a, b):\n    return {bug}\n", "read-1"),
        turn("", "edit", "edit-2", path="calc.py", old=bug, new="b - a"),
        result("edited calc.py", "edit-2"),
        turn("", "test", "test-3"),
        result("1 failed", "test-3", error=True),
        turn("Other way.\n", "edit", "edit-4", path="calc.py", old="b - a", new="a + b"),
        result("edited calc.py", "edit-4"),
        *extra,
        turn("", "test", "test-5"),
        result("1 passed", "test-5"),
        turn("", "submit", "submit-6"),
    ]
    nodes = [
        Node(id=f"m{i}", parent=f"m{i - 1}" if i else None, message=m, sampled=m.role == "assistant")
        for i, m in enumerate(said)
    ]
    return Trajectory(
        id=name,
        nodes=nodes,
        task_id=task or name,
        group_id=f"g-{task or name}",
        reward=Reward(value=1.0, verdict=Verdict.PASSED),
        stop=StopReason.SUBMITTED,
        meta={"source": "expert", "licence": "Apache-2.0", "teacher": "oracle"},
    )


def capture(trajectory: Trajectory, dialect: TextDialect, version: int = 3) -> Trajectory:
    """Give every node of a linear trajectory the ids that an engine would have seen, and sampled nodes logprobs."""
    opening = [n.message for n in trajectory.nodes if n.message.role in ("system", "user")][:2]
    parts = dialect.split_open(opening)
    for node, ids in zip(trajectory.nodes, parts, strict=False):
        node.token_ids = ids
    for node in trajectory.nodes[len(parts) :]:
        if node.sampled:
            node.token_ids = dialect.encode_turn(node.message)
            node.logprobs = [-0.25 - 0.001 * i for i in range(len(node.token_ids))]
            node.weight_version = version
        else:
            node.token_ids = dialect.extend(True, [node.message])
    return trajectory
