"""What an agent changed, taken by a walk that follows no link, opens no device and runs nothing of the tree."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inloop.sandbox.base import Diff

ODD_NAME = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
"""Control characters, backslashes, and bytes that are not UTF-8 (Python shows them as lone surrogates)."""
NOT_WORK = {".git", ".hg", ".svn", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}
"""Folders of tools: never walked, noted once each."""
OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Past these a file is left out and told; a walk never costs more than this."""

    entries: int = 100_000
    depth: int = 40
    file_bytes: int = 8 << 20
    total_bytes: int = 64 << 20


@dataclass(slots=True)
class _Walk:
    pristine: Path
    caps: Caps
    changed: dict[str, bytes] = field(default_factory=dict)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    """Paths that exist in the tree, whatever they are; a whiteout does not."""
    unknown: list[str] = field(default_factory=list)
    """Folders that could not be walked to the end: nothing in them counts as deleted."""
    gone: list[str] = field(default_factory=list)
    """Whiteouts and opaque folders of an overlay's upper."""
    entries: int = 0
    bytes: int = 0

    def reject(self, path: str, why: str) -> None:
        self.rejected.append((path.encode("utf-8", "backslashreplace").decode(), why))


def collect(workspace: Path, pristine: Path, caps: Caps = Caps()) -> Diff:
    """Changes of a whole folder against its pristine twin. Raises OSError when `workspace` is no real folder."""
    walk = _walked(workspace, pristine, caps)
    missing = [p for p in _files(pristine) if p not in walk.seen and not _under(p, walk.unknown)]
    return _diff(walk, missing)


def collect_upper(upper: Path, pristine: Path, caps: Caps = Caps()) -> Diff:
    """Changes held by the upper folder of an overlay over `pristine`: files, whiteouts, opaque folders.

    An agent can forge whiteouts; all that they can say is that its own files are deleted."""
    walk = _walked(upper, pristine, caps)
    missing = [p for p in _files(pristine) if p not in walk.seen and _under(p, walk.gone)] if walk.gone else []
    return _diff(walk, missing)


def _walked(root: Path, pristine: Path, caps: Caps) -> _Walk:
    walk = _Walk(pristine, caps)
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _folder(walk, fd, "", 0)
    finally:
        os.close(fd)
    return walk


def _diff(walk: _Walk, missing: list[str]) -> Diff:
    rejected = {p for p, _ in walk.rejected}
    deleted = tuple(sorted(p for p in missing if p not in rejected))
    return Diff(changed=dict(sorted(walk.changed.items())), deleted=deleted, rejected=tuple(walk.rejected))


def _folder(walk: _Walk, fd: int, rel: str, depth: int) -> None:
    if rel and any(_xattr(fd, name) == b"y" for name in OPAQUE):
        walk.gone.append(rel)
    for name in _names(fd, walk.caps.entries - walk.entries):
        path = f"{rel}/{name}" if rel else name
        walk.entries += 1
        if walk.entries >= walk.caps.entries:
            walk.unknown.append("")
            walk.reject(rel or ".", f"more than {walk.caps.entries} entries; the rest was not read")
            return
        walk.seen.add(path)
        try:
            _entry(walk, fd, name, path, depth)
        except FileNotFoundError:
            walk.seen.discard(path)
        except OSError as error:
            walk.unknown.append(path)
            walk.reject(path, f"unreadable: {error.strerror}")


def _names(fd: int, most: int) -> list[str]:
    """Sorted names, at most `most` + 1 of them: a folder with millions of entries is not read to its end."""
    names = []
    with os.scandir(fd) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) > most:
                break
    return sorted(names)


def _entry(walk: _Walk, fd: int, name: str, path: str, depth: int) -> None:
    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISDIR(info.st_mode):
        _subfolder(walk, fd, name, path, depth)
    elif stat.S_ISREG(info.st_mode):
        _file(walk, fd, name, path, info)
    elif stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
        walk.gone.append(path)
        walk.seen.discard(path)
    elif stat.S_ISLNK(info.st_mode):
        if os.readlink(name, dir_fd=fd) != _pristine_link(walk.pristine / path):
            walk.reject(path, "symbolic link")
    else:
        walk.reject(path, "device, socket or FIFO")


def _subfolder(walk: _Walk, fd: int, name: str, path: str, depth: int) -> None:
    why = "tool folder" if name in NOT_WORK else "odd name" if ODD_NAME.search(name) else ""
    why = why or ("too deep" if depth >= walk.caps.depth else "")
    if why:
        walk.unknown.append(path)
        walk.reject(path, why)
        return
    sub = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    try:
        _folder(walk, sub, path, depth + 1)
    finally:
        os.close(sub)


def _file(walk: _Walk, fd: int, name: str, path: str, info: os.stat_result) -> None:
    if ODD_NAME.search(name):
        walk.reject(path, "odd name")
        return
    old = _pristine_size(walk.pristine / path)
    if info.st_size > walk.caps.file_bytes and info.st_size != old:
        walk.reject(path, f"larger than {walk.caps.file_bytes} bytes")
        return
    data = _read(fd, name, max(walk.caps.file_bytes, old or 0))
    if data is None:
        walk.reject(path, "changed while it was read")
    elif old == len(data) and data == (walk.pristine / path).read_bytes():
        return
    elif info.st_nlink != 1:
        walk.reject(path, "hard link")
    elif len(data) > walk.caps.file_bytes or walk.bytes + len(data) > walk.caps.total_bytes:
        walk.reject(path, "over the limit of bytes")
    else:
        walk.bytes += len(data)
        walk.changed[path] = data


def _read(fd: int, name: str, most: int) -> bytes | None:
    """None when it is no longer a regular file or grew past `most` bytes."""
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=fd)
    with os.fdopen(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        data = stream.read(most + 1)
    return data if len(data) <= most else None


def _pristine_size(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        info = path.lstat()
        return info.st_size if stat.S_ISREG(info.st_mode) else None
    return None


def _pristine_link(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink(path)  # noqa: PTH115 (Path.readlink normalises)
    return None


def _xattr(fd: int, name: str) -> bytes:
    with contextlib.suppress(OSError):
        return os.getxattr(fd, name)
    return b""


def _files(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in NOT_WORK]
        rel = os.path.relpath(folder, root)
        yield from (f if rel == "." else f"{rel}/{f}" for f in files)


def _under(path: str, roots: list[str]) -> bool:
    return any(not r or path == r or path.startswith(r + "/") for r in roots)
