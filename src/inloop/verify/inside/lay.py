"""Lays a submission over the pristine workspace before anything of it runs, and can bring that state back."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

PRISTINE = Path("/run/pristine")
"""The workspace as the task has it, read only."""
MOST = 5000
"""Workspaces of more files are not brought back between two halves."""
SCRATCH = ("/tmp", "/dev/shm")


class Laid:
    """`job`: `cwd`, `changed` (path -> hex) and `deleted` paths."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.root = Path(job["cwd"])
        self.changed: dict[str, str] = job["changed"]
        self.dropped: list[str] = []
        """Paths that could not be laid, with why."""
        self.before: dict[str, tuple[int, ...]] = {}
        for name in job["deleted"]:
            with contextlib.suppress(OSError):
                (self.root / name).unlink()
                self._prune((self.root / name).parent)
        for name in self.changed:
            self._write(name)

    def _write(self, name: str) -> None:
        path = self.root / name
        try:
            if path.is_symlink():
                path.unlink()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes.fromhex(self.changed[name]))
        except OSError as error:
            self.dropped.append(f"{name}: {error.strerror}")

    def _prune(self, folder: Path) -> None:
        while folder != self.root and not any(folder.iterdir()):
            os.rmdir(folder)  # noqa: PTH106
            folder = folder.parent

    def remember(self) -> None:
        self.before = self._state()

    def restore(self) -> None:
        """Undo what a half did to the workspace and to the scratch folders."""
        for folder in SCRATCH:
            empty(Path(folder))
        if len(self.before) > MOST:
            return
        now = self._state()
        for name in sorted(now.keys() - self.before.keys(), reverse=True):
            remove(self.root / name)
        for name, state in self.before.items():
            if now.get(name) != state:
                self._bring_back(name)

    def _bring_back(self, name: str) -> None:
        with contextlib.suppress(OSError):
            if name in self.changed:
                remove(self.root / name)
                self._write(name)
            elif (PRISTINE / name).is_file():
                remove(self.root / name)
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(PRISTINE / name, self.root / name, follow_symlinks=False)
            self.before[name] = identity(os.lstat(self.root / name))

    def _state(self) -> dict[str, tuple[int, ...]]:
        """Every file, link and empty folder; what can't be forged of it: the change time."""
        found: dict[str, tuple[int, ...]] = {}
        for folder, folders, files in os.walk(self.root):
            relative = Path(folder).relative_to(self.root)
            for name in files:
                with contextlib.suppress(OSError):
                    found[str(relative / name)] = identity(os.lstat(f"{folder}/{name}"))
            for name in folders:
                found[str(relative / name)] = ()
            if len(found) > MOST:
                break
        return found


def identity(info: os.stat_result) -> tuple[int, ...]:
    return (info.st_ino, info.st_size, info.st_mode, info.st_ctime_ns)


def remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            remove(path)
