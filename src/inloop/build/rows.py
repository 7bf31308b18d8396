"""Rows of datasets, from JSONL or parquet, and what shape they have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from inloop.errors import InloopError, TaskError
from inloop.files import BadLine, read_json_lines

Shape = Literal["swe", "humaneval", "mbpp", "unknown"]
Row = dict[str, Any]


def read_rows(path: Path, bad: list[BadLine]) -> Iterator[tuple[int, Row]]:
    """(row number, row). Lines that are no JSON objects go to `bad`. Raises TaskError when the file can't be read."""
    if not path.is_file():
        raise TaskError(f"{path}: no such file", fix="give a .jsonl or .parquet file, or a folder of Harbor tasks")
    if path.suffix == ".parquet":
        yield from _parquet(path)
        return
    for number, row in read_json_lines(path, bad):
        if isinstance(row, dict):
            yield number, row
        else:
            bad.append(BadLine(number, "not a JSON object"))


def _parquet(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise InloopError("parquet files need pyarrow", fix="pip install 'inloop[data]'") from None
    try:
        table = pq.ParquetFile(path)
        number = 0
        for batch in table.iter_batches(256):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (OSError, ValueError) as error:
        raise TaskError(f"{path}: not a parquet file ({error})") from None


def shape(row: Mapping[str, Any]) -> Shape:
    if "entry_point" in row and "test" in row and "prompt" in row:
        return "humaneval"
    if "test_list" in row and ("code" in row or "canonical_solution" in row):
        return "mbpp"
    return "swe" if "instance_id" in row and solution_of(row) else "unknown"


def solution_of(row: Mapping[str, Any]) -> str:
    return text(row, "patch", "golden_patch", "gold_patch", "model_patch")


def text(row: Mapping[str, Any], *keys: str) -> str:
    """The first of the keys that holds a non-empty string."""
    return next((row[k] for k in keys if isinstance(row.get(k), str) and row[k]), "")


def ids(row: Mapping[str, Any], *keys: str) -> list[str]:
    """A list of test ids, given as a list or as JSON text."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, str) and value.strip().startswith("["):
            try:
                value = json.loads(value)
            except ValueError:
                continue
        if isinstance(value, list | tuple):
            return [str(v) for v in value]
    return []


def task_id(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "task"
