"""Forked mode: repositories as they are - src layout, conftest, unittest, fixtures, helpers, data."""

from __future__ import annotations

from typing import Any

import pytest

from inloop.sandbox.base import Diff
from inloop.tasks.task import Limits, Task
from inloop.types import Verdict
from inloop.verify.verifier import Verifier

WORKSPACE = {
    "src/box/__init__.py": "from box.core import Box\n",
    "src/box/core.py": "class Box:\n    def __init__(self, n): self.n = n\n    def double(self): return 0\n",
    "conftest.py": "import pytest\nfrom box import Box\n@pytest.fixture\ndef box(): return Box(4)\n",
    "tests/conftest.py": "import pytest\n@pytest.fixture\ndef three(): return 3\n",
    "tests/__init__.py": "",
    "tests/util.py": "def near(a, b): return abs(a - b) < 1e-6\n",
    "tests/test_visible.py": "def test_v(box): assert box.n == 4\n",
    "data/x.txt": "12",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--strict-markers'\n",
}
TESTS = {
    "__init__.py": "",
    "test_box.py": """
import pathlib, subprocess, sys, unittest
import pytest
from box import Box
from .util import near
from .more import EXTRA


def test_fixture(box, three):
    assert box.double() + three == 11

@pytest.mark.parametrize("n, want", [(1, 2), pytest.param(2, 4, id="two")])
def test_param(n, want):
    assert Box(n).double() == want

class TestBox:
    @pytest.fixture(autouse=True)
    def _made(self): self.b = Box(3)
    def test_in_class(self): assert self.b.double() == 6

class Old(unittest.TestCase):
    def setUp(self): self.b = Box(5)
    def test_equal(self): self.assertEqual(self.b.double(), 10)
    def test_raises(self):
        with self.assertRaises(TypeError): Box(None).double()

def test_files(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("1")
    assert pathlib.Path("data/x.txt").read_text() == "12" and near(EXTRA, 7)
    assert (pathlib.Path(__file__).parent / "golden.txt").read_text() == "g"
    assert not pathlib.Path("made.txt").exists()
    pathlib.Path("made.txt").write_text("x"); pathlib.Path("data/x.txt").write_text("13")

def test_process():
    code = "import sys; sys.path.insert(0, 'src'); from box import Box; print(Box(2).double())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "4\\n"
""",
    "more.py": "EXTRA = 7\n",
    "golden.txt": "g",
    "deep/test_sub.py": "from box import Box\ndef test_sub(box): assert box.double() == 8\n",
}
GOOD = "class Box:\n    def __init__(self, n): self.n = n\n    def double(self): return self.n * 2\n"
GOOD += "    def __setattr__(self, k, v): object.__setattr__(self, k, v if v is not None else object())\n"
CORE = "src/box/core.py"


@pytest.fixture(scope="module")
def task(make_task: Any) -> Task:
    return make_task(
        WORKSPACE, TESTS, {CORE: GOOD}, mode="forked", python_path=("src", "."), cpu_seconds=3.0, wall_seconds=60.0
    )


def test_a_repository_as_it_is(verifier: Verifier, task: Task) -> None:
    """Both halves write into the workspace and must each find it pristine."""
    reward = verifier.verify(task, Diff(changed={CORE: GOOD.encode()}))
    assert reward.value == 1.0 and not reward.evidence, reward
    assert "test_box.py::TestBox::test_in_class" in {t.id for t in reward.tests}
    assert "deep/test_sub.py::test_sub" in {t.id for t in reward.tests}


def test_changed_conftest_and_tests_do_not_count(verifier: Verifier, task: Task) -> None:
    evil = b"def pytest_pyfunc_call(pyfuncitem): return True\n"
    changed = {"conftest.py": evil, "tests/conftest.py": evil, "src/box/conftest.py": evil, "tests/util.py": evil}
    reward = verifier.verify(task, Diff(changed=changed))
    assert reward.value == 0.0 and sum("left out" in e for e in reward.evidence) == 4


def test_a_deleted_module_stays_deleted(verifier: Verifier, task: Task) -> None:
    reward = verifier.verify(task, Diff(deleted=(CORE,)))
    assert reward.value == 0.0 and reward.fraction == 0.0
    moved = {"src/box/kern.py": GOOD.encode(), "src/box/__init__.py": b"from box.kern import Box\n"}
    assert verifier.verify(task, Diff(changed=moved, deleted=(CORE,))).value == 1.0


def test_after_an_endless_test_the_rest_still_runs(verifier: Verifier, task: Task) -> None:
    code = GOOD.replace("return self.n * 2", "\n        while self.n == 3: pass\n        return self.n * 2")
    reward = verifier.verify(task, Diff(changed={CORE: code.encode()}))
    found = {t.id.rpartition("::")[2]: t.status for t in reward.tests}
    assert found.pop("test_in_class") == "timeout" and set(found.values()) == {"passed"}, reward
    assert reward.verdict is Verdict.TIMEOUT and reward.value == 0.0


def test_after_a_crash_the_rest_still_runs(verifier: Verifier, task: Task) -> None:
    code = GOOD.replace(
        "return self.n * 2",
        "\n        import ctypes\n        if self.n == 3: ctypes.string_at(0)\n        return self.n * 2",
    )
    reward = verifier.verify(task, Diff(changed={CORE: code.encode()}))
    found = {t.id.rpartition("::")[2]: t.status for t in reward.tests}
    assert found.pop("test_in_class") == "missing" and set(found.values()) == {"passed"}, reward
    assert reward.verdict is Verdict.FAILED and reward.value == 0.0


def test_processes_and_memory_are_bounded(verifier: Verifier, make_task: Any) -> None:
    tests = {"test_a.py": "from a import f\ndef test_f(): assert f() == 1\n"}
    task = make_task(
        {"a.py": ""}, tests, {"a.py": "def f(): return 1\n"}, mode="forked", limits=Limits(memory_mb=200, processes=16)
    )
    bomb = b"import os, time\nfor _ in range(40):\n    try:\n        if os.fork() == 0: time.sleep(30); os._exit(0)\n"
    bomb += b"    except OSError: pass\n"
    hog = b"x = [bytearray(b'x' * (1 << 26)) for _ in range(64)]\n"
    for attack in (bomb + hog, bomb + b"def f(): return 2\n"):
        reward = verifier.verify(task, Diff(changed={"a.py": attack}))
        assert reward.value == 0.0 and reward.verdict in (Verdict.FAILED, Verdict.TIMEOUT), reward


def test_the_parent_never_imports_the_submission(verifier: Verifier, make_task: Any) -> None:
    """A conftest at the root imports the package: that must happen in the fork, not in the parent."""
    code = "import os, pathlib\nPIDS = pathlib.Path('/tmp/pids')\nPIDS.open('a').write(f'{os.getpid()} ')\n"
    code += "def f(): return PIDS.read_text().split()\n"
    tests = {"test_a.py": "import os\nfrom a import f\ndef test_f(): assert f() == [str(os.getpid())]\n"}
    task = make_task({"a.py": "", "conftest.py": "import a\n"}, tests, {"a.py": code}, mode="forked")
    assert verifier.verify(task, Diff(changed={"a.py": code.encode()})).value == 1.0
