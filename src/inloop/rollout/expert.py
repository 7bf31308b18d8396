"""A scripted expert that knows the oracle: it solves tasks through the real harness, with honest detours.

It keeps no state: what to do next follows from the conversation, the task that it is about, and the turn's seed."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inloop.engine.base import ChatReply, EngineInfo, Sampling
from inloop.errors import TaskError
from inloop.harness import blocks
from inloop.harness.tools import replace_once
from inloop.rollout.repair import Repair, first_edit, wrong_edits
from inloop.tasks.task import Task
from inloop.types import Call, Message, Part, Text
from inloop.verify.oracle import oracle_diff

STAGED = "staged"
"""`Message.origin` of a turn that is a mistake on purpose: it is shown, and bears no loss."""
NOTHING_LEFT = "I have no further idea."
KNOWN = ("read", "edit", "test", "submit")


@dataclass(frozen=True, kw_only=True)
class ExpertConfig:
    detours: float = 0.5
    """Share of the tasks whose traceback does not name the fix that get a wrong first edit."""
    second: float = 0.3
    """After a wrong edit that was taken back: how often another line is tried before the right one."""
    same_line: float = 0.4
    """Share of the wrong edits that are a wrong fix of the right line; the others are on another line."""
    test_first: bool = True
    """Run the visible tests before the first edit."""
    thoughts: bool = False
    """A few words before some of the calls; they cost tokens."""


@dataclass(frozen=True, slots=True)
class _Script:
    """What is known of one task."""

    task: Task
    before: dict[str, str]
    after: dict[str, str]


@dataclass
class _Scene:
    """What has happened so far, read off the conversation."""

    read: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    edits: list[Repair] = field(default_factory=list)
    """Those that were done and still stand, in order."""
    undone: list[Repair] = field(default_factory=list)
    tested: int = 0
    """Test runs."""
    last: str = ""
    failed: bool = False
    """The last observation reports a failure."""


class Expert:
    """A chat engine over the oracles of `tasks`. Raises TaskError for a task without a solution."""

    def __init__(self, tasks: Sequence[Task], config: ExpertConfig | None = None) -> None:
        self.config = config or ExpertConfig()
        self._scripts: dict[str, list[_Script]] = {}
        for task in tasks:
            self._scripts.setdefault(task.instruction.strip(), []).append(_script(task))

    def info(self) -> EngineInfo:
        return EngineInfo(model="expert", max_model_len=1 << 20, dtype="none", weight_version=0, trainable=False)

    def close(self) -> None:
        self._scripts = {}

    def chat(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], sampling: Sampling) -> ChatReply:
        """The next turn. `tools` is empty where calls are written as blocks of text."""
        script = self._find(messages)
        rng = random.Random(f"{script.task.id}:{sampling.seed}")
        scene = _scene(script, messages)
        call, words, staged = self._next(script, scene, rng)
        said = Message(role="assistant", parts=_parts(call, words, bool(tools)), origin=STAGED if staged else None)
        return ChatReply(message=said, finish="stop")

    def _find(self, messages: Sequence[Message]) -> _Script:
        """The task that the conversation is about: by its instruction, then by the file that was read."""
        said = next((m.text.strip() for m in messages if m.role == "user"), "")
        known = self._scripts.get(said, [])
        texts = {m.text.rstrip("\n") for m in messages if m.role in ("user", "tool")}
        shown = [s for s in known if any(t.rstrip("\n") in texts for t in s.before.values())]
        if not known:
            raise TaskError(f"the expert has no task with this instruction: {said[:80]!r}")
        return (shown or known)[0]

    def _next(self, script: _Script, scene: _Scene, rng: random.Random) -> tuple[Call | None, str, bool]:
        """(call, words before it, whether it is a mistake on purpose)."""
        unread = [path for path in script.after if path not in scene.read]
        if unread:
            return _call("read", path=unread[0]), "", False
        if scene.files == script.after:
            return self._finish(scene)
        if scene.edits:
            if scene.last != "test":
                return _call("test"), "", False
            return self._after_wrong(script, scene) if scene.failed else (_call("submit"), "", False)
        if not scene.tested and self.config.test_first:
            return _call("test"), "", False
        if wrong := self._detour(script, scene, rng):
            return wrong.call(), "", True
        return self._right(script, scene)

    def _finish(self, scene: _Scene) -> tuple[Call | None, str, bool]:
        """All is as it should be: test, and submit what passes; what still fails is never submitted."""
        if scene.last != "test":
            return _call("test"), "", False
        return (None, NOTHING_LEFT, False) if scene.failed else (_call("submit"), "", False)

    def _after_wrong(self, script: _Script, scene: _Scene) -> tuple[Call | None, str, bool]:
        """Mend the edited line where it is the right one, else take the edit back."""
        wrong = scene.edits[-1]
        aim = first_edit(wrong.path, scene.files[wrong.path], script.after[wrong.path])
        if aim and aim.old == wrong.new:
            return aim.call(), self._words("Not so."), False
        return wrong.back().call(), self._words("Not this line."), False

    def _detour(self, script: _Script, scene: _Scene, rng: random.Random) -> Repair | None:
        if script.task.provenance.kind == "misspelling" or len(scene.undone) > 1:
            return None
        if rng.random() >= (self.config.second if scene.undone else self.config.detours):
            return None
        path = next(p for p in script.after if scene.files[p] != script.after[p])
        options = wrong_edits(path, scene.files[path], script.after[path])
        same = [o for o in options if o.same_line]
        other = [o for o in options if not o.same_line and o.edit.old not in {u.old for u in scene.undone}]
        chosen = same if same and (rng.random() < self.config.same_line or not other) else other
        return rng.choice(chosen).edit if chosen else None

    def _right(self, script: _Script, scene: _Scene) -> tuple[Call | None, str, bool]:
        path = next(p for p in script.after if scene.files[p] != script.after[p])
        edit = first_edit(path, scene.files[path], script.after[path])
        if edit is None:
            return _call("write", path=path, content=script.after[path]), "", False
        return edit.call(), "", False

    def _words(self, text: str) -> str:
        return f"{text}\n" if self.config.thoughts else ""


def _script(task: Task) -> _Script:
    after = {path: data.decode() for path, data in sorted(oracle_diff(task).changed.items())}
    paths = {path: task.workspace / path for path in after}
    return _Script(task, {p: f.read_text("utf-8") if f.is_file() else "" for p, f in paths.items()}, after)


def _scene(script: _Script, messages: Sequence[Message]) -> _Scene:
    scene = _Scene(files=dict(script.before))
    for said, answer in itertools.pairwise(messages):
        if said.role == "assistant":
            for call in _calls(said):
                _follow(scene, call)
                scene.failed = answer.is_error
    return scene


def _calls(said: Message) -> tuple[Call, ...]:
    return said.all_calls or blocks.read_turn(said.text, KNOWN).all_calls


def _follow(scene: _Scene, call: Call) -> None:
    given = call.arguments or {}
    scene.last = call.name
    scene.tested += call.name == "test"
    if call.name == "read":
        scene.read.append(given["path"])
    elif call.name == "write":
        scene.files[given["path"]] = given["content"]
    elif call.name == "edit":
        edit = Repair(given["path"], given["old"], given["new"])
        scene.files[edit.path] = replace_once(scene.files[edit.path], edit.old, edit.new).text
        if scene.edits and scene.edits[-1].back() == edit:
            scene.undone.append(scene.edits.pop())
        else:
            scene.edits.append(edit)


def _call(name: str, **arguments: str) -> Call:
    return Call(id="", name=name, arguments=dict(arguments), raw="")


def _parts(call: Call | None, words: str, native: bool) -> tuple[Part, ...]:
    """A call of its own, or as the block of text that a model would write."""
    before = (Text(text=words),) if words else ()
    if call is None:
        return before
    if native:
        return (*before, replace(call, raw=json.dumps(call.arguments, ensure_ascii=False)))
    raw = blocks.write_call(call.name, call.arguments or {})
    return (*before, replace(call, raw=raw, embedded=True))
