"""What every verifying sandbox is given: the code that runs inside, the test runner, the workspace, limits."""

from __future__ import annotations

import sysconfig
from dataclasses import replace
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

from inloop.errors import InloopError
from inloop.sandbox import installed, slots
from inloop.sandbox.base import Diff
from inloop.sandbox.launch import Bind, Mount, Overlay
from inloop.tasks.task import Limits, Task

INSIDE = "/run/inside"
WORKSPACE = "/workspace"
PRISTINE = "/run/pristine"
EXTRA_MEMORY_MB = 256
"""For the test runner itself, beside what the task may use."""
BOOT = (
    "import sys; sys.path.insert(0, '{inside}'); from inloop.verify.inside.{name} import main; del sys.path[0]; "
    "[sys.modules.pop(m) for m in list(sys.modules) if m.split('.')[0] == 'inloop']; main()"
)
"""The package's name is free again afterwards: a submission may bring its own."""


def program(name: str, *arguments: str) -> tuple[str, ...]:
    """argv of a program of `verify/inside`: isolated mode, no site, nothing written."""
    return ("python3", "-I", "-S", "-B", "-c", BOOT.format(inside=INSIDE, name=name), *arguments)


def code() -> Bind:
    return Bind(Path(__file__).parent / "inside", f"{INSIDE}/inloop/verify/inside")


@cache
def site_folders() -> tuple[str, ...]:
    """Where pytest and the other installed packages are. Raises InloopError when pytest is missing."""
    found = util.find_spec("pytest")
    if found is None or found.origin is None:
        raise InloopError("pytest is not installed here", fix="pip install pytest")
    folders = [str(Path(found.origin).parents[1]), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return tuple(dict.fromkeys(folders))


@cache
def site_mounts() -> tuple[Mount, ...]:
    """Package folders that lie outside of what every sandbox sees anyway."""
    seen = ["/usr", *slots.machine()[0].runtime]
    return tuple(
        Bind(f, f) for f in site_folders() if Path(f).is_dir() and not any(Path(f).is_relative_to(s) for s in seen)
    )


def workspace(task: Task) -> tuple[Mount, ...]:
    """The pristine workspace, under a layer that takes the submission; and once more, read only, to restore from."""
    return (Overlay(task.workspace, WORKSPACE), Bind(task.workspace, PRISTINE), *installed.hide(task.workspace))


def limits(task: Task, tests: int) -> Limits:
    """The task's own, with room for the runner; CPU time for every test and for two rounds of imports."""
    spec = task.verify
    return replace(
        task.limits,
        wall_seconds=spec.wall_seconds,
        cpu_seconds=min(spec.wall_seconds, (tests + 2) * max(spec.cpu_seconds, 20.0)) + 1,
        memory_mb=task.limits.memory_mb + EXTRA_MEMORY_MB,
    )


def lay_job(task: Task, diff: Diff) -> dict[str, Any]:
    """What the program inside needs to lay the submission and to make it importable."""
    return {
        "cwd": WORKSPACE,
        "changed": {path: data.hex() for path, data in diff.changed.items()},
        "deleted": list(diff.deleted),
        "path": [f"{WORKSPACE}/{p}".removesuffix("/.") for p in task.verify.python_path] + extra_paths(task),
    }


def extra_paths(task: Task) -> list[str]:
    """Import folders after the workspace's: installed packages, and what the task's environment adds."""
    return [*task.meta.get("site_packages", []), *site_folders()]
