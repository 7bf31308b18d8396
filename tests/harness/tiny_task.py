"""A task folder of one function and one visible test, and its hidden one."""

from __future__ import annotations

from pathlib import Path

from inloop.tasks.task import Limits, Task, VerifySpec

BROKEN = "def add(a, b):\n    return a - b\n"
FIX = "```edit calc.py\n    return a - b\n=======\n    return a + b\n```"
CHECK = 'from calc import add\n\nassert add(2, 3) == 5, "add(2, 3) is not 5"\nprint("fine")\n'


def write_task(root: Path, name: str = "add", **kw: object) -> Task:
    workspace = root / name / "environment" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "calc.py").write_text(BROKEN)
    (workspace / "check.py").write_text(CHECK)
    tests = root / name / "tests"
    tests.mkdir()
    (tests / "test_calc.py").write_text(
        "from calc import add\n\n\ndef test_small():\n    assert add(2, 3) == 5\n\n\n"
        "def test_negative():\n    assert add(-2, 7) == 5\n"
    )
    expected = ("test_calc.py::test_small", "test_calc.py::test_negative")
    fields: dict[str, object] = {
        "instruction": "calc.py: add is wrong. Mend it.",
        "test_command": "python check.py",
        "limits": Limits(wall_seconds=60, command_seconds=10),
        "verify": VerifySpec(mode="forked", tests=("test_calc.py",), expected=expected, twins=False),
    }
    return Task(id=name, root=root / name, **{**fields, **kw})  # type: ignore[arg-type]
