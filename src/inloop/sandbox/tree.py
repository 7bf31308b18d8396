"""Workspace files, read and written as the sandbox's own user below a folder that no link can lead out of."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from dataclasses import dataclass

from inloop.sandbox import syscalls

READ_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class Tree:
    folder: int
    """A descriptor of the workspace as the sandbox sees it."""
    uid: int
    workdir: str

    def read(self, path: str) -> bytes:
        """Raises FileNotFoundError, IsADirectoryError, ValueError (outside, no regular file, over 64 MiB), OSError."""
        with syscalls.file_identity(self.uid, self.uid):
            fd = self._open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(fd, "rb") as file:
            size = min(_regular(file.fileno(), path), READ_MAX)
            data = file.read(size + 1)  # no more: the buffer is made before it is filled
            if len(data) > size:
                data += file.read(READ_MAX - size)
        if len(data) > READ_MAX:
            raise ValueError(f"{path} is larger than {READ_MAX >> 20} MiB")
        return data

    def write(self, path: str, data: bytes, *, file_mb: int) -> None:
        """The same errors; OSError where the sandbox's user could not write either (no room, no permission)."""
        relative = relative_path(self.workdir, path)
        if len(data) > file_mb << 20:
            raise OSError(errno.EFBIG, f"larger than the limit of {file_mb} MiB", path)
        with syscalls.file_identity(self.uid, self.uid):
            self._make_folders(posixpath.dirname(relative), path)
            fd = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY, 0o644)
            with os.fdopen(fd, "wb", buffering=0) as file:
                _regular(file.fileno(), path)
                file.truncate(0)
                _write_all(file.fileno(), data)

    def _open(self, path: str, flags: int, mode: int = 0) -> int:
        try:
            return syscalls.open_beneath(self.folder, relative_path(self.workdir, path), flags, mode)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.ELOOP, errno.ENXIO):
                why = "is a FIFO or socket" if error.errno == errno.ENXIO else "leads outside the workspace"
                raise ValueError(f"{path} {why}") from None
            raise

    def _make_folders(self, folder: str, path: str) -> None:
        made = ""
        for name in folder.split("/") if folder else []:
            above, made = made, posixpath.join(made, name)
            try:
                os.close(self._open(made, os.O_PATH | os.O_DIRECTORY))
            except FileNotFoundError:
                parent = self._open(above or ".", os.O_PATH | os.O_DIRECTORY)
                try:
                    os.mkdir(name, 0o755, dir_fd=parent)
                finally:
                    os.close(parent)


def relative_path(workdir: str, path: str) -> str:
    """Raises ValueError for a path outside the workspace."""
    if "\0" in path or not path:
        raise ValueError(f"{path!r} is no path")
    inside = posixpath.normpath(posixpath.join(workdir, path))
    if inside != workdir and not inside.startswith(workdir + "/"):
        raise ValueError(f"{path} is outside the workspace {workdir}")
    return inside[len(workdir) + 1 :] or "."


def _regular(fd: int, path: str) -> int:
    """Its size in bytes."""
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", path)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} is no regular file")
    return found.st_size


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
