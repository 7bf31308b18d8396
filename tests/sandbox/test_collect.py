"""The collector takes regular files that changed, and tells of everything else; it follows and runs nothing."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from inloop.sandbox.collect import Caps, collect, collect_upper


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """(pristine, workspace), equal."""
    for name in ("pristine", "work"):
        (tmp_path / name / "pkg").mkdir(parents=True)
        (tmp_path / name / "pkg" / "a.py").write_text("a = 1\n")
        (tmp_path / name / "b.txt").write_text("b")
        (tmp_path / name / "link").symlink_to("b.txt")
    return tmp_path / "pristine", tmp_path / "work"


def why(diff_rejected: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(diff_rejected)


def test_equal_trees_give_an_empty_diff(trees: tuple[Path, Path]) -> None:
    pristine, work = trees
    diff = collect(work, pristine)
    assert diff.empty and not diff.rejected


def test_changed_new_and_deleted_files(trees: tuple[Path, Path]) -> None:
    pristine, work = trees
    (work / "pkg" / "a.py").write_text("a = 2\n")
    (work / "new dir").mkdir()
    (work / "new dir" / "ü.py").write_bytes(b"\xff\x00")
    (work / "b.txt").unlink()
    diff = collect(work, pristine)
    assert diff.changed == {"pkg/a.py": b"a = 2\n", "new dir/ü.py": b"\xff\x00"}
    assert diff.deleted == ("b.txt",) and not diff.rejected


def test_a_file_in_place_of_a_folder(trees: tuple[Path, Path]) -> None:
    pristine, work = trees
    (work / "pkg" / "a.py").unlink()
    (work / "pkg").rmdir()
    (work / "pkg").write_text("now a file")
    diff = collect(work, pristine)
    assert diff.changed == {"pkg": b"now a file"} and diff.deleted == ("pkg/a.py",)


def test_links_and_special_files_are_told_not_followed(trees: tuple[Path, Path], tmp_path: Path) -> None:
    pristine, work = trees
    secret = tmp_path / "secret"
    secret.write_text("hidden answer")
    (work / "pkg" / "a.py").unlink()
    (work / "pkg" / "a.py").symlink_to(secret)
    (work / "dir").symlink_to(tmp_path)
    os.mkfifo(work / "fifo")
    os.link(secret, work / "hard")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(work / "sock"))
        diff = collect(work, pristine)
    assert diff.empty
    reasons = why(diff.rejected)
    assert reasons["pkg/a.py"] == reasons["dir"] == "symbolic link"
    assert reasons["hard"] == "hard link"
    assert reasons["fifo"] == reasons["sock"] == "device, socket or FIFO"


def test_the_root_itself_may_be_no_link(trees: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(trees[1])
    with pytest.raises(OSError):
        collect(tmp_path / "alias", trees[0])


def test_odd_names_tool_folders_and_sizes(trees: tuple[Path, Path]) -> None:
    pristine, work = trees
    Path(os.fsdecode(os.fsencode(work) + b"/caf\xe9.py")).write_text("x")
    (work / "new\nline.py").write_text("x")
    (work / ".git").mkdir()
    (work / ".git" / "config").write_text("[core]\nfsmonitor = evil\n")
    with (work / "huge.py").open("wb") as file:
        file.truncate(1 << 40)
    (work / "big.py").write_bytes(b"x" * 2000)
    diff = collect(work, pristine, Caps(file_bytes=1000))
    assert diff.empty
    assert sorted(w for _, w in diff.rejected) == [
        "larger than 1000 bytes", "larger than 1000 bytes", "odd name", "odd name", "tool folder",
    ]  # fmt: skip
    assert all(p.isprintable() or "\n" in p for p, _ in diff.rejected)


def test_too_many_entries_means_nothing_counts_as_deleted(trees: tuple[Path, Path]) -> None:
    pristine, work = trees
    for n in range(50):
        (work / f"{n:03}").touch()
    diff = collect(work, pristine, Caps(entries=20))
    assert not diff.deleted and "more than 20 entries" in diff.rejected[-1][1]


def test_too_deep_and_total_bytes(trees: tuple[Path, Path]) -> None:
    pristine, work = trees
    deep = work
    for _ in range(6):
        deep = deep / "d"
        deep.mkdir()
    for n in range(3):
        (work / f"{n}.py").write_bytes(b"x" * 400)
    diff = collect(work, pristine, Caps(depth=4, total_bytes=1000))
    assert set(diff.changed) == {"0.py", "1.py"}
    assert sorted(w for _, w in diff.rejected) == ["over the limit of bytes", "too deep"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_told_and_not_deleted(trees: tuple[Path, Path]) -> None:
    pristine, work = trees
    (work / "pkg").chmod(0)
    try:
        diff = collect(work, pristine)
    finally:
        (work / "pkg").chmod(0o755)
    assert diff.empty and why(diff.rejected)["pkg"].startswith("unreadable")


def test_unchanged_large_files_of_the_task_are_no_rejection(trees: tuple[Path, Path]) -> None:
    pristine, work = trees
    for tree in trees:
        (tree / "data.bin").write_bytes(b"x" * 5000)
    assert collect(work, pristine, Caps(file_bytes=1000)).rejected == ()
    (work / "data.bin").write_bytes(b"y" * 5000)
    diff = collect(work, pristine, Caps(file_bytes=1000))
    assert diff.empty and diff.rejected == (("data.bin", "over the limit of bytes"),)


def test_upper_holds_only_what_changed(trees: tuple[Path, Path], tmp_path: Path) -> None:
    pristine, _ = trees
    upper = tmp_path / "upper"
    (upper / "pkg").mkdir(parents=True)
    (upper / "pkg" / "a.py").write_text("a = 3\n")
    (upper / "b.txt").write_text("b")
    diff = collect_upper(upper, pristine)
    assert diff.changed == {"pkg/a.py": b"a = 3\n"} and not diff.deleted and not diff.rejected


def test_opaque_folder_hides_the_pristine_files(trees: tuple[Path, Path], tmp_path: Path) -> None:
    pristine, _ = trees
    (pristine / "pkg" / "c.py").write_text("c")
    upper = tmp_path / "upper"
    (upper / "pkg").mkdir(parents=True)
    (upper / "pkg" / "c.py").write_text("c")
    try:
        os.setxattr(upper / "pkg", "user.overlay.opaque", b"y")
    except OSError:
        pytest.skip("this file system has no user attributes")
    diff = collect_upper(upper, pristine)
    assert diff.deleted == ("pkg/a.py",) and not diff.changed


@pytest.mark.root
def test_whiteouts_delete_files_and_folders(trees: tuple[Path, Path], tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("needs mknod")
    pristine, _ = trees
    upper = tmp_path / "upper"
    upper.mkdir()
    try:
        os.mknod(upper / "pkg", 0o20000, 0)
        os.mknod(upper / "nowhere", 0o20000, 0)
        os.mknod(upper / "null", 0o20666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this root may not make devices")
    diff = collect_upper(upper, pristine)
    assert diff.deleted == ("pkg/a.py",)
    assert diff.rejected == (("null", "device, socket or FIFO"),)
