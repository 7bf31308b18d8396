"""A trajectory in the terminal. Its text is hostile: control sequences are taken out, nothing is interpreted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Group
from rich.rule import Rule
from rich.text import Text as Line

from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Image, Part, Text, Thinking

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]|\x1b[PX^_].{0,4096}?\x1b\\", re.DOTALL
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")
_STYLES = {"system": "magenta", "user": "blue", "assistant": "green", "tool": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How much of a trajectory is shown."""

    line: int = 200
    """Characters of one line."""
    lines: int = 40
    """Lines of one part, head and tail."""


def visible(text: str) -> str:
    """Terminal sequences removed, every other control, invisible or direction character written as its code."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return _CONTROLS.sub(lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 256 else f"\\u{ord(m[0]):04x}", text)


def clip(text: str, look: Look) -> str:
    """Long lines and long texts cut, with what was cut."""
    rows = [r if len(r) <= look.line else f"{r[: look.line]}… (+{len(r) - look.line})" for r in text.split("\n")]
    if len(rows) > look.lines:
        head = look.lines // 2
        rows = [*rows[:head], f"… {len(rows) - look.lines} lines …", *rows[len(rows) - (look.lines - head) :]]
    return "\n".join(rows)


def render(trajectory: Trajectory, look: Look | None = None) -> Group:
    """The head, then each context from its root; what two contexts share is shown once."""
    look = look or Look()
    out: list[Line | Rule] = [_head(trajectory)]
    shown: set[str] = set()
    for number, path in enumerate(trajectory.paths(), 1):
        new = [n for n in path if n.id not in shown]
        shared = len(path) - len(new)
        title = f"context {number}" + (f" (after {shared} shared messages, at {path[shared - 1].id})" if shared else "")
        out.append(Rule(Line(visible(title)), align="left", style="dim"))
        for node in new:
            out += _node(node, look)
        shown.update(n.id for n in new)
    return Group(*out)


def _head(trajectory: Trajectory) -> Line:
    agent = " ".join(str(trajectory.agent.get(k)) for k in ("name", "version") if trajectory.agent.get(k))
    reward = trajectory.reward
    scored = (
        "not scored" if reward is None else f"{reward.verdict} ({'none' if reward.value is None else reward.value})"
    )
    rows = {
        "trajectory": trajectory.id,
        "task": trajectory.task_id,
        "agent": agent,
        "model": trajectory.model,
        "reward": scored,
        "stop": trajectory.stop.value if trajectory.stop else None,
        "tools": ", ".join(tool_name(t) for t in trajectory.tools),
        "counts": ", ".join(f"{k} {v:g}" for k, v in trajectory.counts.items()),
    }
    return Line("\n".join(f"{k:<10} {visible(clip(str(v), Look(lines=4)))}" for k, v in rows.items() if v))


def tool_name(tool: dict[str, object]) -> str:
    function = tool.get("function")
    return str((function if isinstance(function, dict) else tool).get("name", "?"))


def _node(node: Node, look: Look) -> Iterator[Line]:
    message = node.message
    marks = [
        message.role,
        "sampled" if node.sampled else "",
        f"by {message.origin}" if message.origin else "",
        f"answers {message.call_id}" if message.call_id else "",
        "error" if message.is_error else "",
        f"{len(node.token_ids)} tokens" if node.token_ids is not None else "",
        f"{len(node.untrained)} redacted" if node.untrained else "",
    ]
    yield Line(visible(" · ".join(m for m in marks if m)), style=f"bold {_STYLES.get(message.role, 'white')}")
    for part in message.parts:
        yield _part(part, look)
    if not message.parts:
        yield Line("  (nothing)", style="dim")


def _part(part: Part, look: Look) -> Line:
    if isinstance(part, Image):
        return Line(f"  [image {visible(part.media_type)} {part.sha256[:12]}]", style="dim")
    if isinstance(part, Call):
        bad = "" if part.arguments is not None else " (does not parse)"
        return Line(_indented(f"{part.name}({part.raw}){bad}", look), style="cyan")
    if isinstance(part, Thinking):
        return Line("  (thought, not recorded)" if part.hidden else _indented(part.text, look), style="dim italic")
    assert isinstance(part, Text)
    return Line(_indented(part.text, look))


def _indented(text: str, look: Look) -> str:
    return "\n".join("  " + row for row in clip(visible(text), look).split("\n"))
