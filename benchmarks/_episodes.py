"""Made-up bug-fixing episodes of about the size that a small harness writes; deterministic."""

from __future__ import annotations

import random
from collections.abc import Iterator

from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Message, Reward, StopReason, Text, Verdict, message

WORDS = [
    "count", "total", "items", "value", "limit", "start", "end", "index", "width", "text", "line", "token", "price",
    "rate", "amount", "score", "left", "right",
]  # fmt: skip
SYSTEM = (
    "Work on the code in this folder. Each turn, write one block:\n```read FILE```\n```edit FILE\nold lines\n=======\n"
    "new lines\n```\n```test```\n```submit```\nRead before you edit. Test before you submit."
)


def episodes(count: int, *, seed: int = 0, lines: int = 6) -> Iterator[Trajectory]:
    draw = random.Random(seed)
    for number in range(count):
        yield episode(f"e{number}", draw, lines)


def episode(name: str, draw: random.Random, lines: int) -> Trajectory:
    function, *names = draw.sample(WORDS, 6)
    body = [f"    {a} = {draw.choice(names)} {draw.choice('+-*')} {draw.randint(1, 99)}" for a in names[:lines]]
    at = draw.randrange(len(body))
    good, bad, worse = body[at], body[at] + " - 1", body[at] + " + 1"
    source = "\n".join(
        [f"def {function}({', '.join(names)}):", *body[:at], bad, *body[at + 1 :], f"    return {names[0]}"]
    )
    said = [
        message("system", SYSTEM),
        message(
            "user", f"test_{function} fails: `{function}({draw.randint(1, 9)})` gives {draw.randint(10, 99)}. Mend it."
        ),
        call("read", path=f"{function}.py"),
        answer(source),
        *edit(function, bad, worse),
        call("test"),
        answer(f"1 failed: assert {function}(...) == {draw.randint(1, 99)}", error=True),
        *edit(function, worse, good),
        call("test"),
        answer("3 passed"),
        call("submit"),
    ]
    nodes = [
        Node(id=f"m{i}", parent=f"m{i - 1}" if i else None, message=m, sampled=m.role == "assistant")
        for i, m in enumerate(paired(said))
    ]
    return Trajectory(
        id=name, nodes=nodes, task_id=name, reward=Reward(value=1.0, verdict=Verdict.PASSED),
        stop=StopReason.SUBMITTED, meta={"source": "made up", "licence": "Apache-2.0", "teacher": "none"},
    )  # fmt: skip


def edit(function: str, old: str, new: str) -> list[Message]:
    return [call("edit", path=f"{function}.py", old=old, new=new), answer(f"edited {function}.py")]


def call(tool: str, **arguments: str) -> Message:
    return Message(role="assistant", parts=(Text(text=""), Call(id="", name=tool, arguments=dict(arguments), raw="")))


def answer(text: str, *, error: bool = False) -> Message:
    return message("tool", text, is_error=error)


def paired(said: list[Message]) -> Iterator[Message]:
    """Call ids as the harness gives them: 'read-3'."""
    waiting = ""
    for number, m in enumerate(said):
        if m.role == "assistant":
            waiting = f"{m.calls[0].name}-{number}"
            yield Message(
                role="assistant",
                parts=(Call(id=waiting, name=m.calls[0].name, arguments=m.calls[0].arguments, raw=""),),
            )
        else:
            yield Message(
                role=m.role, parts=m.parts, call_id=waiting if m.role == "tool" else None, is_error=m.is_error
            )
