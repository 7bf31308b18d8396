"""Files that survive a crash: atomic writes, whole-line appends, folder locks, tolerant JSONL."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from inloop.errors import DataError


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write beside `path`, sync, rename over it: a reader sees the old or the new content, never a part."""
    raw = data.encode() if isinstance(data, str) else data
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(raw)
            out.flush()
            os.fsync(out.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def append_json(path: Path, value: Any) -> None:
    """Append one JSON line in a single write; a torn tail left by a crash is closed off first."""
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        if _torn(out):
            line = b"\n" + line
        out.write(line)
        out.flush()
        os.fsync(out.fileno())


def _torn(file: IO[bytes]) -> bool:
    size = file.seek(0, os.SEEK_END)
    if not size:
        return False
    file.seek(size - 1)
    return file.read(1) != b"\n"


@dataclass(frozen=True, slots=True)
class BadLine:
    line: int
    """1-based."""
    reason: str


def read_json_lines(path: Path, bad: list[BadLine] | None = None) -> Iterator[tuple[int, Any]]:
    """(line number, value) of each good line; what can't be read is appended to `bad`, never raised."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            line = raw.strip(b"\r\n \t\0\xef\xbb\xbf")
            if not line:
                continue
            try:
                yield number, json.loads(line.decode())
            except ValueError as error:
                if bad is not None:
                    torn = not raw.endswith(b"\n")
                    bad.append(BadLine(number, "torn tail" if torn else f"not JSON: {error}"))


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold `folder` for this process; a second run that wants it is told who has it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise DataError(
                f"{folder} is in use by {file.read().strip() or 'another process'}",
                fix="wait for it to end, stop it, or choose another --out",
            ) from None
        file.truncate(0)
        file.write(f"{what} (pid {os.getpid()})\n")
        file.flush()
        yield
