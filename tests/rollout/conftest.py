"""Tiny tasks with their verifier and sandbox; agents that follow a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.scripts import repeating
from harness.tiny_task import FIX, write_task

from inloop.engine.scripted import ScriptedChat
from inloop.harness.config import HarnessConfig
from inloop.harness.policy import make_policy
from inloop.rollout.run import Rollouts
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.task import Task
from inloop.verify.verifier import Verifier

SOLVE = ["```read calc.py```", FIX, "```test```", "```submit```"]
GIVE_UP = ["```submit```"]


@pytest.fixture(scope="session")
def verifier() -> Verifier:
    return Verifier()


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return write_task(tmp_path / "tasks")


@pytest.fixture
def tasks(tmp_path: Path) -> list[Task]:
    return [write_task(tmp_path / "tasks", f"add{i}") for i in range(3)]


@pytest.fixture
def rollouts(verifier: Verifier) -> Callable[..., Rollouts]:
    """Rollouts of an agent that says `replies`, or of any chat engine."""

    def make(replies: Any, config: HarnessConfig | None = None, **kw: Any) -> Rollouts:
        engine = ScriptedChat(repeating(replies)) if isinstance(replies, list) else replies
        config = config or HarnessConfig(max_turns=6)
        fields: dict[str, Any] = {"backend": Bubblewrap(), "judge": verifier, "backoff": 0.01, **kw}
        return Rollouts(policy=make_policy(engine, config), config=config, **fields)

    return make
