"""The accepted diff into the repository: exactly its paths, never through a link, all of them or none."""

from __future__ import annotations

import contextlib
import os
import posixpath
import secrets
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from inloop.errors import DataError
from inloop.sandbox import syscalls
from inloop.sandbox.base import Diff
from inloop.serve.code.copy import FILE_BYTES, walk

FORBIDDEN = {".git", ".hg", ".svn"}


def changes_since(repository: Path, pristine: Path) -> list[str]:
    """Paths that are not as they were copied: changed, gone, or new."""
    before = {p.relative_to(pristine).as_posix() for p in pristine.rglob("*") if p.is_file()}
    out = []
    with _opened(repository) as root:
        for folder, name, path in walk(root, Counter()):
            if path not in before:
                out += [path] if os.stat(name, dir_fd=folder, follow_symlinks=False).st_size <= FILE_BYTES else []
            elif _read(root, path) != (pristine / path).read_bytes():
                out.append(path)
            before.discard(path)
    return sorted([*out, *before])


def apply(repository: Path, pristine: Path, diff: Diff) -> list[str]:
    """Write and delete what `diff` says. Returns the paths. Raises DataError, and nothing has changed, when the
    repository is not as it was copied or a path leads through a link."""
    if changed := changes_since(repository, pristine):
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        raise DataError(
            f"{repository} has changed since the agent began: {', '.join(changed[:5])}{more}",
            fix="look at the diff and apply it by hand, or run the task again",
        )
    paths = [*diff.changed, *diff.deleted]
    for path in paths:
        _check(path)
    with _opened(repository) as root:
        for path in paths:
            _no_links(root, path, known=(pristine / path).is_file())
        done: list[str] = []
        try:
            for path in paths:
                done.append(path)
                _put(root, path, diff.changed.get(path), _mode(pristine / path))
        except OSError as error:
            for path in done:
                _put(root, path, _bytes(pristine / path), _mode(pristine / path))
            raise DataError(f"{repository}: {error}; nothing was changed", fix="mend that and apply again") from error
    return paths


def _check(path: str) -> None:
    parts = path.split("/")
    if path.startswith("/") or any(p in ("", ".", "..") or p.lower() in FORBIDDEN for p in parts):
        raise DataError(f"{path!r} is no path that an agent may change", fix="look at the diff: this is no accident")


def _no_links(root: int, path: str, *, known: bool) -> None:
    """The path is new, or a file that was copied, and every folder above it is a folder or not there."""
    folder = ""
    for part in path.split("/"):
        folder = posixpath.join(folder, part)
        try:
            mode = os.stat(folder, dir_fd=root, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return
        wanted = stat.S_ISREG if folder == path else stat.S_ISDIR
        if not wanted(mode):
            raise DataError(f"{folder} is a link, or not what the diff takes it for", fix="apply the diff by hand")
    if not known:
        raise DataError(f"{path} is there, and the agent never saw it", fix="apply the diff by hand")


def _put(root: int, path: str, data: bytes | None, mode: int) -> None:
    folder, name = posixpath.split(path)
    with _folder(root, folder, make=data is not None) as fd:
        if data is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
            return
        temporary = f".{name[:100]}.{secrets.token_hex(6)}"
        out = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=fd)
        try:
            with os.fdopen(out, "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), mode)
            os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=fd)
            raise


@contextlib.contextmanager
def _folder(root: int, folder: str, *, make: bool) -> Iterator[int]:
    """Opened step by step, so that no part of it can be a link."""
    fd = os.dup(root)
    try:
        for part in folder.split("/") if folder else ():
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=fd)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _opened(repository: Path) -> Iterator[int]:
    try:
        fd = os.open(repository, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise DataError(f"{repository}: {error.strerror}", fix="is it still there?") from None
    try:
        yield fd
    finally:
        os.close(fd)


def _read(root: int, path: str) -> bytes:
    fd = syscalls.open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        return file.read()


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _mode(path: Path) -> int:
    return 0o755 if path.is_file() and path.stat().st_mode & 0o100 else 0o644
