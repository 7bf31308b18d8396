"""A solution is applied exactly, or the error says where it does not fit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inloop.errors import TaskError
from inloop.verify.oracle import apply_patch

PATCH = """\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-bye
--- /dev/null
+++ b/sub/new.py
@@ -0,0 +1,2 @@
+x
+y
\\ No newline at end of file
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    (tmp_path / "gone.py").write_text("bye\n")
    return tmp_path


def test_change_delete_and_add(workspace: Path) -> None:
    diff = apply_patch(PATCH, workspace)
    assert diff.changed == {"a.py": b"one\nTWO\nthree\n", "sub/new.py": b"x\ny"} and diff.deleted == ("gone.py",)


@pytest.mark.parametrize(
    "text, why",
    [
        (PATCH.replace("-two", "-zwei"), "a.py:2: the patch does not fit"),
        (PATCH.replace("a/a.py", "a/b.py"), "b.py is not in the workspace"),
        ("no patch", "no changes"),
        ("--- a/a.py\n+++ b/a.py\n@@ -1,9 +1,9 @@\n one\n", "cut off"),
        ("--- a/a.py\n+++ b/a.py\n@@ nonsense @@\n", "not a hunk"),
        ("--- a/../../etc/x\n+++ b/../../etc/x\n@@ -0,0 +1 @@\n+x\n", "leaves the workspace"),
        ("GIT binary patch\n", "binary"),
    ],
)
def test_what_does_not_fit_is_named(workspace: Path, text: str, why: str) -> None:
    with pytest.raises(TaskError, match=why):
        apply_patch(text, workspace, "p")


LINES = st.lists(st.sampled_from(["a", "b", "", "x\x0c", "-c", "+d", "\\ e", "\u2028f"]), max_size=14)


@given(LINES, LINES, st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_agrees_with_diff(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], end1: bool, end2: bool
) -> None:
    """Whatever `diff -u` writes gives back exactly the new file."""
    folder = tmp_path_factory.mktemp("patch")
    before = "\n".join(old) + ("\n" if end1 and old else "")
    after = "\n".join(new) + ("\n" if end2 and new else "")
    (folder / "f").write_bytes(before.encode())
    (folder / "g").write_bytes(after.encode())
    run = subprocess.run(["diff", "-u", "--label", "a/f", "--label", "b/f", "f", "g"], cwd=folder, capture_output=True)
    if before != after:
        assert apply_patch(run.stdout.decode(), folder).changed == {"f": after.encode()}
