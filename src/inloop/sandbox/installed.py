"""Installed copies of what a workspace holds itself: an agent must not find the right version in site-packages."""

from __future__ import annotations

import importlib.util
import sysconfig
from functools import cache
from pathlib import Path

from inloop.sandbox.launch import Data, Mount, Scratch

NEEDED = {
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "py",
    "typing_extensions",
    "exceptiongroup",
}
"""Of the test runner itself; a task about one of these is found by the audit."""


def copies(workspace: Path) -> list[Path]:
    """Folders and modules of site-packages with the name of a package or module at the top of the workspace, or of its
    `src` or `lib`."""
    workspace = Path(workspace)
    names = {n for folder in (workspace, workspace / "src", workspace / "lib") for n in _importable(folder)} - NEEDED
    return [p for site in _sites() for n in sorted(names) for p in (site / n, site / f"{n}.py") if p.exists()]


def hide(workspace: Path) -> tuple[Mount, ...]:
    """Mounts that put something empty over every copy."""
    found = copies(workspace)
    return tuple(Scratch(str(p), mb=1) if p.is_dir() else Data(b"", str(p)) for p in found)


def _importable(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    packages = [p.name for p in folder.iterdir() if (p / "__init__.py").is_file()]
    return packages + [p.stem for p in folder.glob("*.py")]


@cache
def _sites() -> tuple[Path, ...]:
    """Every site-packages that sandboxes can see."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    found = importlib.util.find_spec("pytest")
    if found is not None and found.origin:
        folders.append(str(Path(found.origin).parents[1]))
    return tuple(Path(f) for f in dict.fromkeys(folders) if Path(f).is_dir())
