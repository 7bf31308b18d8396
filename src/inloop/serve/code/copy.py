"""A repository's files, copied by a walk that follows no link and runs nothing: git and its hooks stay out of it."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inloop.errors import DataError
from inloop.sandbox import syscalls
from inloop.sandbox.collect import NOT_WORK, ODD_NAME

LEFT_OUT = NOT_WORK | {".venv", "venv", "node_modules", ".tox", ".nox", ".eggs"}
"""Folders that are made from the rest, or are no work."""
SECRETS = (".env", ".env.*", "*.pem", "*.key", "id_rsa*", "id_ed25519*", ".netrc", ".pypirc", ".npmrc")
"""Never shown to a model."""
FILE_BYTES = 8 << 20
TOTAL_BYTES = 256 << 20
ENTRIES = 50_000
CHUNK = 1 << 20


@dataclass(slots=True)
class Copied:
    files: dict[str, os.stat_result] = field(default_factory=dict)
    """Path -> what the file was when it was copied."""
    left_out: Counter[str] = field(default_factory=Counter)
    bytes: int = 0


def copy_repository(repository: Path, to: Path) -> Copied:
    """Regular files of `repository` into the new folder `to`. Raises DataError for one that is too large."""
    try:
        root = os.open(repository, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise DataError(f"{repository}: {error.strerror}", fix="give the folder of a repository with -C") from None
    copied = Copied()
    to.mkdir(parents=True)
    try:
        for folder, name, path in walk(root, copied.left_out):
            _copy(copied, folder, name, path, to)
    finally:
        os.close(root)
    if not copied.files:
        raise DataError(f"{repository} holds no file to work on", fix="give the folder of a repository with -C")
    return copied


def walk(root: int, left_out: Counter[str]) -> Iterator[tuple[int, str, str]]:
    """(descriptor of the folder, name, path) of every regular file below the descriptor `root`."""
    count = 0
    todo: list[str] = [""]
    while todo:
        rel = todo.pop()
        try:
            fd = syscalls.open_beneath(root, rel or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # it went, or became a link, while it was looked at
            left_out["unreadable"] += 1
            continue
        try:
            with os.scandir(fd) as entries:
                names = sorted(entry.name for entry in entries)
            for name in names:
                count += 1
                if count > ENTRIES:
                    raise DataError(f"the repository has more than {ENTRIES} entries", fix="give a part of it with -C")
                path = f"{rel}/{name}" if rel else name
                kind = _kind(fd, name)
                if kind == "folder":
                    todo.append(path)
                elif kind == "file":
                    yield fd, name, path
                else:
                    left_out[kind] += 1
        finally:
            os.close(fd)


def _kind(fd: int, name: str) -> str:
    """'file', 'folder', or why it is left out."""
    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if ODD_NAME.search(name):
        return "odd name"
    if stat.S_ISLNK(info.st_mode):
        return "symbolic link"
    if stat.S_ISDIR(info.st_mode):
        return "folder" if name not in LEFT_OUT else "tool folder"
    if not stat.S_ISREG(info.st_mode):
        return "device, socket or FIFO"
    return "secret" if any(fnmatch.fnmatch(name, pattern) for pattern in SECRETS) else "file"


def _copy(copied: Copied, folder: int, name: str, path: str, to: Path) -> None:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_size > FILE_BYTES:
            copied.left_out["larger than 8 MiB"] += 1
            return
        data = file.read(FILE_BYTES + 1)
    copied.bytes += len(data)
    if copied.bytes > TOTAL_BYTES:
        raise DataError(f"the repository is larger than {TOTAL_BYTES >> 20} MiB", fix="give a part of it with -C")
    target = to / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    target.chmod(0o755 if info.st_mode & 0o100 else 0o644)
    copied.files[path] = info
