"""The one tolerant line reader: bytes, split on LF only; a bad line costs itself and is counted."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from inloop.trace.skipped import Skipped

try:  # three times as fast; the results are the same
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment,unused-ignore]

_fast_loads: Callable[[bytes | str], Any] = json.loads if orjson is None else orjson.loads

MAX_LINE = 1 << 29
"""Bytes; a longer line is skipped with its reason, so that no file can take all the memory."""

_AROUND = b"\r\n \t\0\xef\xbb\xbf"
_BETWEEN = re.compile(r"[\s\0\ufeff]*")
_SURROGATES = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


def quick(text: str) -> Any:
    """One JSON value of a string, as `json.loads` reads it. Raises ValueError."""
    try:
        return _fast_loads(text)
    except ValueError:
        return json.loads(text)


def lines(path: Path, skipped: list[Skipped]) -> Iterator[tuple[int, Any]]:
    """(line number, JSON value) of each record of a JSONL file, glued records one by one; the bad go to `skipped`."""
    with path.open("rb") as file:
        yield from lines_of(file, str(path), skipped)


def lines_of(file: IO[bytes], name: str, skipped: list[Skipped]) -> Iterator[tuple[int, Any]]:
    """Like `lines`, from an open binary file (a decompressing one, an archive member)."""
    number = 0
    while raw := file.readline(MAX_LINE):
        number += 1
        if len(raw) == MAX_LINE and not raw.endswith(b"\n"):
            _drain(file)
            skipped.append(Skipped(file=name, line=number, reason=f"line over {MAX_LINE >> 20} MiB"))
            continue
        line = raw.strip(_AROUND)
        if not line:
            continue
        try:
            yield number, _fast_loads(line)
        except ValueError:
            values, fault = tolerant(line)
            for value in values:
                yield number, value
            if fault:
                torn = not raw.endswith(b"\n")
                reason = "torn tail" if torn else fault
                skipped.append(Skipped(file=name, line=number, reason=reason, kind="torn" if torn else "line"))


def tolerant(line: bytes) -> tuple[list[Any], str]:
    """(the JSON values that stand one after the other in a line, why its rest could not be read or '')."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        return _whole_before(line, error.start), f"not UTF-8 at byte {error.start + 1}"
    return _values(text)


def _whole_before(line: bytes, end: int) -> list[Any]:
    """Glued records that end before the first bad byte are kept."""
    return _values(line[:end].decode())[0]


def _values(text: str) -> tuple[list[Any], str]:
    out: list[Any] = []
    at = _skip(text, 0)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            return out, f"not JSON: {error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__}"
        out.append(clean(value))
        at = _skip(text, at)
    return out, ""


def _skip(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def _drain(file: IO[bytes]) -> None:
    while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
        pass


def clean(value: Any) -> Any:
    """Lone surrogates become U+FFFD: no tokenizer and no UTF-8 file can hold them."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [clean(v) for v in value]
    if isinstance(value, dict):
        return {clean(k): clean(v) for k, v in value.items()}
    return value


def loads(raw: bytes) -> Any:
    """One JSON document, BOM and lone surrogates mended. Raises ValueError."""
    raw = raw.strip(_AROUND)
    try:
        return _fast_loads(raw)
    except ValueError:
        values, fault = tolerant(raw)
        if fault or len(values) != 1:
            raise ValueError(fault or f"{len(values)} JSON documents, not one") from None
        return values[0]


def dump(value: Any) -> bytes:
    """Compact UTF-8 JSON without a line end; what UTF-8 can't hold becomes '?'."""
    if orjson is not None:
        with contextlib.suppress(TypeError):
            return orjson.dumps(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
