"""The expert solves real tasks in the real harness; its detours are honest and marked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from inloop.build.starter.builder import build_starter
from inloop.build.starter.library import entries
from inloop.engine.base import Sampling
from inloop.errors import TaskError
from inloop.harness.config import HarnessConfig
from inloop.rollout.expert import NOTHING_LEFT, STAGED, Expert, ExpertConfig
from inloop.rollout.repair import first_edit, wrong_edits
from inloop.rollout.run import Rollouts, group
from inloop.tasks.task import Task
from inloop.trace.trajectory import Trajectory
from inloop.types import Call, Message, StopReason, message

HARNESS = HarnessConfig(tools=("read", "edit", "test", "submit"), guides=(), max_turns=14)
STRAIGHT = ExpertConfig(detours=0.0)
ALWAYS = ExpertConfig(detours=1.0, second=0.0)
LOGIC = {"operator": 1.0, "comparison": 1.0, "constant": 1.0}


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    out = tmp_path_factory.mktemp("starter")
    return build_starter(out, 6, 4, library=entries()[:24:3], mix=LOGIC, test_share=0.0, audit=False).tasks


def calls(trajectory: Trajectory) -> list[str]:
    return [c.name for n in trajectory.nodes if n.sampled for c in n.message.all_calls]


def run(make: Callable[..., Rollouts], tasks: Sequence[Task], config: ExpertConfig, n: int) -> list[Trajectory]:
    rollouts = make(Expert(tasks, config), HARNESS)
    return [rollouts.run(group(t, 1, seed=5)[0]) for t in tasks[:n]]


def test_it_reads_tests_edits_tests_and_submits(rollouts: Callable[..., Rollouts], starter: list[Task]) -> None:
    for done in run(rollouts, starter, STRAIGHT, 2):
        assert done.stop is StopReason.SUBMITTED and done.reward and done.reward.value == 1.0
        assert calls(done) == ["read", "test", "edit", "test", "submit"]
        assert done.counts["invalid_calls"] == 0 and not any(n.message.origin == STAGED for n in done.nodes)


def test_a_detour_fails_its_test_and_is_mended_before_it_submits(
    rollouts: Callable[..., Rollouts], starter: list[Task]
) -> None:
    for done in run(rollouts, starter, ALWAYS, 3):
        assert done.stop is StopReason.SUBMITTED and done.reward is not None
        staged = [n for n in done.nodes if n.message.origin == STAGED]
        assert len(staged) == 1 and staged[0].message.all_calls[0].name == "edit"
        names = calls(done)
        assert names[:4] == ["read", "test", "edit", "test"] and names[-2:] == ["test", "submit"]
        last_test = [n.message for n in done.nodes if n.message.role != "assistant"][-1]
        assert not last_test.is_error  # nothing is submitted on a failing test
        if done.reward.value == 1.0:
            assert names.count("edit") >= 2


class Talk:
    """A conversation with the expert, whose observations the test gives."""

    def __init__(self, task: Task, config: ExpertConfig, others: Sequence[Task] = (), tools: bool = False) -> None:
        self.expert = Expert([*others, task], config)
        self.tools = [{"function": {"name": "read"}}] if tools else []
        self.messages = [message("system", "s"), message("user", task.instruction)]

    def turn(self, seed: int = 0) -> Message:
        self.messages.append(self.expert.chat(self.messages, self.tools, Sampling(seed=seed)).message)
        return self.messages[-1]

    def call(self, seed: int = 0) -> Call:
        return self.turn(seed).all_calls[0]

    def see(self, text: str, failed: bool = False) -> None:
        self.messages.append(message("user", text, is_error=failed))


def source(task: Task) -> str:
    return (task.workspace / f"{task.verify.modules[0]}.py").read_text()


def to_first_edit(task: Task, config: ExpertConfig) -> Talk:
    talk = Talk(task, config)
    assert talk.call().name == "read"
    talk.see(source(task).rstrip("\n"))
    assert talk.call().name == "test"
    talk.see("FAIL", failed=True)
    return talk


def test_it_never_submits_what_still_fails(starter: list[Task]) -> None:
    talk = to_first_edit(starter[0], STRAIGHT)
    assert talk.call().name == "edit"
    talk.see("ok")
    assert talk.call().name == "test"
    talk.see("FAIL", failed=True)
    assert talk.turn().text == NOTHING_LEFT


def test_a_wrong_edit_of_another_line_is_taken_back_first(starter: list[Task]) -> None:
    config = ExpertConfig(detours=1.0, second=0.0, same_line=0.0)
    talk = to_first_edit(starter[0], config)
    wrong = talk.call().arguments
    assert wrong and talk.messages[-1].origin == STAGED
    talk.see("ok")
    assert talk.call().name == "test"
    talk.see("FAIL", failed=True)
    back = talk.call().arguments
    assert back and (back["old"], back["new"]) == (wrong["new"], wrong["old"]) and not talk.messages[-1].origin
    talk.see("ok")
    right = talk.call().arguments
    assert right and right["old"] != wrong["old"]
    assert talk.messages[-1].origin is None


def test_a_wrong_fix_of_the_right_line_is_changed_at_once(starter: list[Task]) -> None:
    config = ExpertConfig(detours=1.0, second=0.0, same_line=1.0)
    task = next(t for t in starter if any(w.same_line for w in wrong_edits("m.py", source(t), goal(t))))
    talk = to_first_edit(task, config)
    wrong = talk.call().arguments
    talk.see("ok")
    talk.call()
    talk.see("FAIL", failed=True)
    right = talk.call().arguments
    assert wrong and right and right["old"] == wrong["new"]
    assert source(task).replace(wrong["old"], right["new"]) == goal(task)


def goal(task: Task) -> str:
    from inloop.verify.oracle import oracle_diff

    return oracle_diff(task).changed[f"{task.verify.modules[0]}.py"].decode()


def test_the_next_turn_follows_from_the_conversation_and_the_seed(starter: list[Task]) -> None:
    def said(seed: int) -> str:
        return to_first_edit(starter[1], ExpertConfig(detours=0.5)).turn(seed).text

    assert said(3) == said(3)
    assert len({said(seed) for seed in range(12)}) > 1


def test_a_misspelling_has_no_detour(tmp_path: Path) -> None:
    task = build_starter(
        tmp_path, 1, 0, library=entries()[:6], mix={"misspelling": 1.0}, test_share=0.0, audit=False
    ).tasks[0]
    talk = to_first_edit(task, ALWAYS)
    assert talk.turn().origin is None


def test_tasks_with_one_instruction_are_told_apart_by_what_is_read(starter: list[Task], tmp_path: Path) -> None:
    from dataclasses import replace

    other = replace(starter[1], instruction=starter[0].instruction)
    talk = Talk(starter[0], STRAIGHT, others=[other])
    talk.messages.append(message("assistant", f"```read {starter[0].verify.modules[0]}.py```"))
    talk.see(source(starter[0]).rstrip("\n"))
    talk.call()
    talk.see("FAIL", failed=True)
    edit = talk.call().arguments
    assert edit and edit["old"] in source(starter[0])


def test_an_unknown_instruction_is_an_error(starter: list[Task]) -> None:
    with pytest.raises(TaskError, match="no task"):
        Expert(starter).chat([message("user", "make tea")], [], Sampling())


def test_it_calls_natively_where_tools_are_shown(starter: list[Task]) -> None:
    call = Talk(starter[0], STRAIGHT, tools=True).call()
    assert not call.embedded and json.loads(call.raw) == call.arguments


@pytest.mark.parametrize(
    ("now", "after", "old", "new"),
    [
        ("a\nb\nc\n", "a\nx\nc\n", "b", "x"),
        ("a\nc\n", "a\nb\nc\n", None, None),
        ("x\nif a:\n    b\nif a:\n    b\n", "x\nif a:\n    b\nif a:\n    c\n", None, None),
        ("b\n", "a\nb\n", None, None),
        ("a\nb\n", "a\nb\nc\n", None, None),
        ("a\nb\nb\n", "a\nb\n", None, None),
    ],
)
def test_an_edit_finds_its_place_by_its_text_alone(now: str, after: str, old: str | None, new: str | None) -> None:
    edit = first_edit("f.py", now, after)
    assert edit and now.count(edit.old) == 1 and now.replace(edit.old, edit.new) == after
    assert old is None or (edit.old, edit.new) == (old, new)


def test_there_is_no_edit_where_nothing_differs() -> None:
    assert first_edit("f.py", "a\n", "a\n") is None


def test_wrong_edits_miss_the_goal_and_can_be_taken_back(starter: list[Task]) -> None:
    for task in starter:
        now = source(task)
        for wrong in wrong_edits("m.py", now, goal(task)):
            changed = now.replace(wrong.edit.old, wrong.edit.new)
            assert changed not in (now, goal(task)) and changed.replace(wrong.edit.new, wrong.edit.old) == now
    assert wrong_edits("m.py", "def f(:\n", "") == []
