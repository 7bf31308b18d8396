"""A small task in each mode, and agents that work on it in a real episode sandbox."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inloop.sandbox.base import Diff, SandboxSpec
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.folder import write_task
from inloop.tasks.task import Limits, Task, VerifySpec
from inloop.verify.verifier import Verifier, expected_ids

Files = dict[str, bytes | str]
MakeTask = Callable[..., Task]


def read_folder(folder: Path) -> dict[str, bytes | str]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="session")
def verifier() -> Verifier:
    """Without memory of earlier verdicts: each test wants a run of its own."""
    return Verifier(cache=False)


@pytest.fixture(scope="session")
def make_task(tmp_path_factory: pytest.TempPathFactory, verifier: Verifier) -> MakeTask:
    """make(workspace, tests, solution files, **verify fields) -> a task with expected ids, twins already checked."""

    def make(
        workspace: Files, tests: Files, solution: Files, *, name: str = "t", build: bool = True,
        limits: Limits | None = None, **verify: object,
    ) -> Task:  # fmt: skip
        files = tuple(n for n in tests if Path(n).name.startswith("test_") and n.endswith(".py"))
        spec = VerifySpec(**({"tests": files} | verify))  # type: ignore[arg-type]
        root = tmp_path_factory.mktemp("task") / name
        task = Task(id=name, root=root, instruction="do it", verify=spec, limits=limits or Limits())
        parts = {"workspace": workspace, "tests": tests, "solution": {f"files/{p}": d for p, d in solution.items()}}
        task = write_task(task, **parts)
        if build and spec.mode != "command":
            ids = spec.expected or expected_ids(task, verifier)
            task = write_task(replace(task, verify=replace(spec, expected=ids)), **parts)
            if spec.twins:
                verifier.build_twins(task)
        return task

    return make


@pytest.fixture(scope="session")
def agent() -> Callable[..., Diff]:
    return work


def work(task: Task, files: Files, script: str | bytes = "") -> Diff:
    """What an agent leaves that writes `files` and runs `script`, in an episode sandbox."""
    sandbox = Bubblewrap().open(SandboxSpec(workspace=task.workspace, limits=task.limits, owner="test agent"))
    try:
        for path, data in files.items():
            sandbox.write(path, data.encode() if isinstance(data, str) else data)
        if script:
            code = base64.b64encode(script.encode() if isinstance(script, str) else script).decode()
            sandbox.run(f"echo {code} | base64 -d > /tmp/.agent.sh; WORKSPACE=$PWD bash /tmp/.agent.sh", timeout=20)
        return sandbox.diff()
    finally:
        sandbox.close()
