"""Which of an agent's changes reach the verifying sandbox. Everything else is dropped, and told."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath

from inloop.sandbox.base import Diff
from inloop.tasks.task import Task, VerifySpec

NEVER = {
    "conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", ".pytest.ini", "tox.ini", ".coveragerc",
    ".gitattributes", ".gitmodules", ".pythonrc.py", "pyvenv.cfg",
}  # fmt: skip
"""File names that steer the interpreter or the test runner."""
ONLY_BY_NAME = {"setup.cfg", "setup.py", "pyproject.toml", "pytest.toml", ".pytest.toml"}
"""Carried over only where a task allows the very path."""
NEVER_SUFFIX = (".pth", ".pyc", ".pyo", ".pyd", ".so", ".dll", ".dylib", ".egg-link", ".egg", ".whl", ".zip")
"""Compiled or archived code, and files that add import paths."""
RUNNER = {"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py", "inloop"}
"""Import names of the test runner."""


def narrow(diff: Diff, task: Task) -> Diff:
    """The changes that count, and what was left out with why."""
    rejected = list(diff.rejected)
    changed, deleted = {}, []
    for path in [*diff.changed, *diff.deleted]:
        if why := reason(path, task):
            rejected.append((path, why))
        elif path in diff.changed:
            changed[path] = diff.changed[path]
        else:
            deleted.append(path)
    return replace(diff, changed=changed, deleted=tuple(deleted), rejected=tuple(rejected))


def reason(path: str, task: Task) -> str:
    """Why a path is not carried over; '' when it is."""
    spec, pure = task.verify, PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        return "not a path of the workspace"
    if pure.parts[0] == "tests":
        return "tests are the task's own"
    if pure.name in NEVER or pure.name.endswith(NEVER_SUFFIX):
        return "steers the interpreter or the test runner"
    if any(part.endswith((".dist-info", ".egg-info")) for part in pure.parts):
        return "steers the interpreter or the test runner"
    if pure.name in ONLY_BY_NAME and path not in spec.allow:
        return "steers the interpreter or the test runner"
    if shadows(pure, spec) and not (task.workspace / pure).exists():
        return "takes the name of a standard or test-runner module"
    if not any(matches(path, pattern) for pattern in spec.allow):
        return "outside the allowed paths"
    return ""


def shadows(path: PurePosixPath, spec: VerifySpec) -> bool:
    """Would it be importable under the name of the standard library or the test runner?"""
    for root in spec.python_path:
        parts = PurePosixPath(root).parts
        if path.parts[: len(parts)] == parts and len(path.parts) > len(parts):
            name = path.parts[len(parts)].split(".")[0]
            if name in RUNNER or name in sys.stdlib_module_names:
                return True
    return False


def matches(path: str, pattern: str) -> bool:
    """Glob match of a whole POSIX path: `**` is any number of folders, `*` and `?` stay inside one."""
    return bool(_compiled(pattern).fullmatch(path))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    out = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        out += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.compile(out, re.DOTALL)
