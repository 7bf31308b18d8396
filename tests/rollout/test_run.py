from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from harness.scripts import repeating
from rollout.conftest import GIVE_UP, SOLVE

from inloop.engine.base import ChatReply, Sampling
from inloop.engine.scripted import ScriptedChat
from inloop.errors import EngineFault, SandboxFault, VerifierFault
from inloop.harness.config import HarnessConfig
from inloop.harness.loop import Cancel
from inloop.rollout.run import Rollouts, group, passed
from inloop.sandbox.base import Diff, Isolation, Sandbox, SandboxSpec
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.task import Task
from inloop.trace.check import check
from inloop.trace.trajectory import Trajectory
from inloop.types import Message, Reward, StopReason, Verdict
from inloop.verify.verifier import Verifier

Make = Callable[..., Rollouts]


def one(rollouts: Rollouts, task: Task, **kw: Any) -> Trajectory:
    return rollouts.run(group(task, 1, seed=0)[0], **kw)


def test_a_solved_task(rollouts: Make, task: Task) -> None:
    done = one(rollouts(SOLVE), task)
    assert done.stop is StopReason.SUBMITTED and done.reward and done.reward.value == 1.0
    assert done.diff == (
        "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
    )
    assert {"sampling", "tools", "tests", "sandbox", "verify", "total"} <= set(done.timings)
    assert sum(v for k, v in done.timings.items() if k != "total") <= done.timings["total"] * 1.05
    assert done.harness["hash"] == HarnessConfig(max_turns=6).hash()
    assert done.meta["isolation"]["backend"] == "bubblewrap"
    assert not check(done)
    assert Trajectory.from_dict(done.to_dict()).to_dict() == done.to_dict()


def test_failure_is_zero_and_is_not_tried_again(rollouts: Make, task: Task) -> None:
    done = one(rollouts(GIVE_UP), task)
    assert done.reward and done.reward.value == 0.0 and done.counts["retries"] == 0 and done.diff == ""


def test_work_without_a_submit_is_judged_as_it_is(rollouts: Make, task: Task) -> None:
    done = one(rollouts([*SOLVE[:2], "```test```"]), task)
    assert done.stop is StopReason.TURN_LIMIT and done.reward and done.reward.value == 1.0


def test_ids_and_seeds_follow_from_the_plan(task: Task) -> None:
    a, b = group(task, 4, seed=7, scope="m"), group(task, 6, seed=7, scope="m")
    assert a == b[:4]
    assert len({w.id for w in b}) == len({w.seed for w in b}) == 6 and len({w.group_id for w in b}) == 1
    assert {w.id for w in b}.isdisjoint(w.id for w in group(task, 6, seed=8, scope="m"))
    assert {w.id for w in b}.isdisjoint(w.id for w in group(task, 6, seed=7, scope="n"))


def test_a_group_in_threads(rollouts: Make, task: Task) -> None:
    seen: list[str] = []
    with ThreadPoolExecutor(3) as pool:
        done = rollouts(SOLVE).run_group(task, 3, seed=0, executor=pool, on_done=lambda t: seen.append(t.id))
    assert [t.id for t in done] == [w.id for w in group(task, 3, seed=0, scope=rollouts(SOLVE).scope())]
    assert sorted(seen) == sorted(t.id for t in done) and passed(done) == (3, 3)


class Flaky:
    """The backend, with its first `faults` sandboxes missing."""

    name = "bubblewrap"

    def __init__(self, faults: int) -> None:
        self.faults, self.opened = faults, 0
        self.real = Bubblewrap()

    def probe(self) -> Isolation:
        return self.real.probe()

    def open(self, spec: SandboxSpec) -> Sandbox:
        self.opened += 1
        if self.opened <= self.faults:
            raise SandboxFault("no room")
        return self.real.open(spec)


def test_a_sandbox_fault_is_tried_again(rollouts: Make, task: Task) -> None:
    backend = Flaky(2)
    done = one(rollouts(SOLVE, backend=backend), task)
    assert done.reward and done.reward.value == 1.0 and done.counts["retries"] == 2
    assert [e["kind"] for e in done.events][:4] == ["sandbox_fault", "retry", "sandbox_fault", "retry"]


def test_a_fault_that_stays_is_no_zero(rollouts: Make, task: Task) -> None:
    done = one(rollouts(SOLVE, backend=Flaky(99), retries=2), task)
    assert done.stop is StopReason.SANDBOX_FAULT and done.reward is None and done.counts["retries"] == 2


class Dying(ScriptedChat):
    """Is away for some calls in the middle, then back."""

    def __init__(self, replies: Sequence[str], away: range) -> None:
        super().__init__(repeating(replies))
        self.away, self.calls = away, 0

    def chat(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], sampling: Sampling) -> ChatReply:
        self.calls += 1
        if self.calls in self.away:
            raise EngineFault("connection refused")
        return super().chat(messages, tools, sampling)


def test_an_engine_that_dies_and_comes_back(rollouts: Make, task: Task) -> None:
    done = one(rollouts(Dying(SOLVE, range(3, 5))), task)
    assert done.reward and done.reward.value == 1.0 and done.counts["retries"] == 2
    assert done.counts["turns"] == 4  # the tries before left nothing in it


class Judge:
    """The verifier, away for the first calls."""

    def __init__(self, real: Verifier, faults: int, *, raises: bool) -> None:
        self.real, self.faults, self.raises, self.asked = real, faults, raises, 0

    def verify(self, task: Task, work: Diff) -> Reward:
        self.asked += 1
        if self.asked > self.faults:
            return self.real.verify(task, work)
        if self.raises:
            raise VerifierFault("no memory")
        return Reward(value=None, verdict=Verdict.FAULT, evidence=("no memory",))


@pytest.mark.parametrize("raises", [False, True])
def test_a_verifier_fault_is_tried_again_on_the_same_work(
    rollouts: Make, task: Task, verifier: Verifier, raises: bool
) -> None:
    backend = Flaky(0)
    done = one(rollouts(SOLVE, backend=backend, judge=Judge(verifier, 2, raises=raises)), task)
    assert done.reward and done.reward.value == 1.0 and backend.opened == 1
    never = one(rollouts(SOLVE, judge=Judge(verifier, 99, raises=raises)), task)
    assert never.stop is StopReason.VERIFIER_FAULT and never.reward and never.reward.value is None


def test_a_task_whose_setup_fails_is_a_fault(rollouts: Make, task: Task) -> None:
    done = one(rollouts(SOLVE), replace(task, setup=("exit 7",)))
    assert done.stop is StopReason.SANDBOX_FAULT and done.events[-1]["kind"] == "task_error"
    assert "exit 7" in done.events[-1]["message"]


def test_cancel_ends_a_running_command_and_is_no_result(rollouts: Make, task: Task) -> None:
    cancel = Cancel()
    threading.Timer(0.7, cancel.set).start()
    started = time.monotonic()
    done = one(rollouts(["```bash\nsleep 9\n```"]), task, cancel=cancel)
    assert done.stop is StopReason.CANCELLED and done.reward is None
    assert time.monotonic() - started < 8


def test_a_rollout_after_the_cancel_does_nothing(rollouts: Make, task: Task) -> None:
    cancel = Cancel()
    cancel.set()
    assert one(rollouts(SOLVE), task, cancel=cancel).stop is StopReason.CANCELLED


def test_what_the_diff_leaves_out_is_noted(rollouts: Make, task: Task) -> None:
    done = one(
        rollouts(["```bash\nln -s /etc/passwd link; head -c 10 /dev/zero > z.bin; rm check.py\n```", "```submit```"]),
        task,
    )
    assert "Binary files /dev/null and b/z.bin differ" in (done.diff or "")
    assert "--- a/check.py\n+++ /dev/null" in (done.diff or "")
    assert any(e["kind"] == "rejected_change" and e["path"] == "link" for e in done.events)
