from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from inloop.rollout.patch import LIMIT, unified
from inloop.sandbox.base import Diff

CONTENT = st.text(alphabet="ab\n \t\x0c\u2028é", max_size=60)


@settings(max_examples=25, deadline=None)
@given(old=CONTENT, new=CONTENT)
def test_git_applies_what_is_written(tmp_path_factory: object, old: str, new: str) -> None:
    root: Path = tmp_path_factory.mktemp("w")  # type: ignore[attr-defined]
    (root / "a.txt").write_bytes(old.encode())
    text = unified(root, Diff(changed={"a.txt": new.encode()}))
    if old == new:
        assert text == ""
        return
    run = subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=root, input=text.encode(), capture_output=True)
    assert run.returncode == 0, (text, run.stderr)
    assert (root / "a.txt").read_bytes() == new.encode()


def test_new_deleted_binary_and_long(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("x = 1\n")
    text = unified(tmp_path, Diff(changed={"new.py": b"y = 2", "b.bin": b"\0\1"}, deleted=("old.py",)))
    assert "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+y = 2\n\\ No newline at end of file\n" in text
    assert "--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n" in text
    assert "Binary files /dev/null and b/b.bin differ\n" in text
    long = unified(tmp_path, Diff(changed={"long.txt": b"line\n" * 100_000}))
    assert len(long) < LIMIT + 100 and "characters cut" in long
