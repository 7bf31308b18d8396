"""A recorded session as a candidate: what was asked, from which commit, what was done; or why it can't be one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from inloop.build.session_steps import FRESH_SHELL, Step, is_test_run, looks_passed, only_tests, steps_of
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Text

MAX_WORDS = 2000
_WRAPPED = re.compile(
    r"<(system-reminder|local-command-\w+|command-\w+|ide_\w+|environment_\w+|user_instructions)>.*?</\1>", re.S
)
"""What harnesses put into the person's messages."""
_SMALL_TALK = 3
"""Words: shorter messages ('yes', 'go on') ask for nothing new."""


@dataclass(frozen=True)
class Session:
    key: str
    trajectory: str
    """Id of the trace that it was read from; file and place in it for one that is not imported."""
    words: str
    """What the person asked for, in order."""
    steps: tuple[Step, ...] = field(repr=False)
    patch: str = field(default="", repr=False)
    """What the trace says that came out, where it says so: it stands for the steps."""
    root: str = ""
    """The folder that the session ran in."""
    commit: str = ""
    """Recorded by the session; '' where it recorded none."""
    branch: str = ""
    began: float = 0.0
    """Unix time of its first message; 0 if it has none."""
    fresh_shell: bool = False
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    """Secret -> kind, of what was cut: the repository is searched for them as well. Never written."""

    @property
    def unit(self) -> str:
        """The same demand at the same start is one unit: two sessions over it never stand in two splits."""
        return "session:" + hashlib.sha256(f"{self.commit}\0{self.words}".encode()).hexdigest()[:12]


def read_session(trajectory: Trajectory) -> Session | str:
    """The session, or why it can't become a task. Nothing is checked against a repository yet."""
    nodes = main_line(trajectory)
    value = trajectory.reward.value if trajectory.reward else None
    if value is not None and value < 1:
        return "it was scored, and failed"
    answers = {n.message.call_id: n for n in trajectory.nodes if n.message.call_id and n.message.role != "assistant"}
    done = [(c, answers.get(c.id)) for c in _calls(nodes)]
    if value is None and (why := _tests_passed(done)):
        return why
    kept = [c for c, answer in done if not _refused(c, answer) and not only_tests(c)]
    steps = tuple(s for call in kept for s in steps_of(call))
    patch = trajectory.diff or ""
    if not steps and not patch:
        return "it changed nothing"
    words = asked(trajectory, nodes)
    if len(words.split()) < _SMALL_TALK:
        return "no words of a person in it"
    if len(words.split()) > MAX_WORDS:
        return f"the person's words are over {MAX_WORDS}"
    meta = trajectory.meta
    said = repr((words, steps, patch, meta.get("commit"), meta.get("cwd")))
    return Session(
        key=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:12],
        trajectory=trajectory.id if not trajectory.id.isdigit() else f"{meta.get('file', '')}#{trajectory.id}",
        words=words,
        steps=steps,
        patch=patch,
        root=_string(meta, "cwd").rstrip("/"),
        commit=_string(meta, "commit"),
        branch=_string(meta, "branch"),
        began=next((n.time for n in trajectory.nodes if n.time), 0.0),
        fresh_shell=str(meta.get("format")) in FRESH_SHELL,
    )


def main_line(trajectory: Trajectory) -> list[Node]:
    """What happened, in order: of each context the branch that was gone on with last; by time where all have one."""
    newest: dict[str, Node] = {}
    roots = _roots(trajectory)
    for node in trajectory.nodes:
        newest[roots[node.id]] = node
    lines = [n for leaf in newest.values() for n in trajectory.path(leaf)]
    if all(n.time is not None for n in lines):
        lines.sort(key=lambda n: n.time or 0.0)
    return lines


def asked(trajectory: Trajectory, nodes: Iterable[Node]) -> str:
    """The person's messages up to the last change, without what the harness put into them; small talk is left out."""
    spawned = {str(s.get("root")) for s in trajectory.meta.get("subagents", ())}
    roots = _roots(trajectory)
    said: list[str] = []
    waiting: list[str] = []
    for node in nodes:
        message = node.message
        if message.role == "assistant" and any(steps_of(c) for c in message.all_calls):
            said, waiting = said + waiting, []
        if message.role != "user" or message.origin is not None or message.call_id or roots[node.id] in spawned:
            continue
        text = "\n".join(_WRAPPED.sub("", p.text).strip() for p in message.parts if isinstance(p, Text)).strip()
        if len(text.split()) >= _SMALL_TALK and text not in said + waiting:
            waiting.append(text)
    return "\n\n".join(said)


def _roots(trajectory: Trajectory) -> dict[str, str]:
    """Node -> the root of its context; parents stand before their children."""
    out: dict[str, str] = {}
    for node in trajectory.nodes:
        out[node.id] = out.get(node.parent or "", node.id)
    return out


def _calls(nodes: Iterable[Node]) -> list[Call]:
    """Each once: what a later context repeats happened before. Demonstrations never happened."""
    seen: set[tuple[str, str, str]] = set()
    out = []
    for node in nodes:
        if node.message.role != "assistant" or node.message.origin == "demo":
            continue
        for call in node.message.all_calls:
            if (key := (call.id, call.name, call.raw)) not in seen or not call.id:
                seen.add(key)
                out.append(call)
    return out


def _refused(call: Call, answer: Node | None) -> bool:
    """An edit that failed, or that nobody answered, changed nothing; a command that failed may have."""
    if answer is None:
        return not call.embedded
    return answer.message.is_error and not any(s.kind == "run" for s in steps_of(call))


def _tests_passed(done: list[tuple[Call, Node | None]]) -> str:
    """'' when the last test run of the session passed."""
    runs = [answer for call, answer in done if is_test_run(call) and answer is not None]
    if not runs:
        return "it ran no tests"
    last = runs[-1].message
    return "" if looks_passed(last.text, is_error=last.is_error) else "its last test run did not pass"


def _string(meta: dict[str, Any], key: str) -> str:
    return str(meta.get(key) or "")
