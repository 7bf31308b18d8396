"""Task folders of one function, one visible check and two hidden tests: as small as a real task can be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from inloop.tasks import folder
from inloop.tasks.task import Limits, Provenance, Task, VerifySpec

BROKEN = "def add(a, b):\n    return a - b\n"
FIX = "```edit calc.py\n    return a - b\n=======\n    return a + b\n```"
CHECK = 'from calc import add\n\nassert add(2, 3) == 5, "add(2, 3) is not 5"\nprint("fine")\n'
HIDDEN = """from calc import add


def test_small():
    assert add(2, 3) == 5


def test_negative():
    assert add(-2, 7) == 5
"""
PATCH = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"


def write_task(root: Path, name: str = "add", **kw: Any) -> Task:
    task = Task(
        id=name,
        root=root / name,
        instruction="calc.py: add is wrong. Mend it.",
        test_command="python check.py",
        limits=Limits(wall_seconds=60, command_seconds=10),
        verify=VerifySpec(
            mode="forked",
            tests=("test_calc.py",),
            expected=("test_calc.py::test_small", "test_calc.py::test_negative"),
            twins=False,
        ),
        provenance=Provenance(builder="hand", unit=f"{name}.py::add"),
    )
    written = folder.write_task(
        task,
        workspace={"calc.py": BROKEN, "check.py": CHECK},
        tests={"test_calc.py": HIDDEN},
        solution={"patch.diff": PATCH},
    )
    return replace(written, **kw)
