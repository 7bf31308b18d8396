"""A task's hidden tests, read once: the test files, what lies beside them, and the pristine tests below them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inloop.errors import TaskError
from inloop.tasks.task import Task
from inloop.verify.parsing import parse

NOT_TESTS = {"test.sh", "twins.json", "__pycache__", ".pytest_cache"}
MAX_TREE = 64 << 20
"""Bytes of all files in tests/ together."""


@dataclass(frozen=True, slots=True)
class TestTree:
    __test__ = False  # not a pytest class
    sources: dict[str, str]
    """The pytest files that are run, relative to tests/."""
    beside: dict[str, bytes]
    """Other files in the task's tests/: helpers, data, conftest.py."""
    pristine: dict[str, bytes]
    """The workspace's own conftest.py and tests/, relative to the workspace; for runs without the workspace."""

    def hidden(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """Everything under tests/ with `files` in place of the originals, relative to the workspace."""
        whole = self.beside | {f: s.encode() for f, s in self.sources.items()} | files
        return {f"tests/{name}": data for name, data in whole.items()}


def read(task: Task) -> TestTree:
    """Raises TaskError when there is nothing to run or a file can't be read or parsed."""
    if not task.verify.tests:
        raise TaskError(f"{task.id}: no hidden tests are named", fix="set [metadata.inloop.verify] tests in task.toml")
    files = _read_folder(task.tests)
    sources = {}
    for name in task.verify.tests:
        if name not in files:
            raise TaskError(f"{task.tests / name}: not there", fix="restore it, or correct `tests` in task.toml")
        try:
            sources[name] = files.pop(name).decode()
            parse(sources[name])
        except (UnicodeDecodeError, SyntaxError, ValueError) as error:
            raise TaskError(f"{task.tests / name}: {error}", fix="hidden tests must be Python source") from None
    pristine = {f"tests/{n}": d for n, d in _read_folder(task.workspace / "tests").items()}
    conftest = task.workspace / "conftest.py"
    if conftest.is_file():
        pristine["conftest.py"] = conftest.read_bytes()
    return TestTree(sources, files, pristine)


def _read_folder(folder: Path) -> dict[str, bytes]:
    out: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if NOT_TESTS & set(relative.parts) or path.is_symlink() or not path.is_file():
            continue
        size += path.stat().st_size
        if size > MAX_TREE:
            raise TaskError(f"{folder}: more than {MAX_TREE >> 20} MB", fix="keep test data small")
        out[relative.as_posix()] = path.read_bytes()
    return out
