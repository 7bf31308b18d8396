"""The stages of a run folder that are done: each is done once, in a process that may be stopped anywhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inloop.files import append_json, read_json_lines

NAME = "stages.jsonl"


class Stages:
    """`done`: stage -> what it told, with its seconds; on disk one line a stage."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / NAME
        rows = [row for _, row in read_json_lines(self.file)] if self.file.is_file() else []
        self.done: dict[str, dict[str, Any]] = {row["stage"]: row for row in rows}

    def do(self, name: str, stage: Callable[[], dict[str, Any]]) -> None:
        """Run it and keep what it tells; one that raises is not done."""
        began = time.monotonic()
        row = {"stage": name, **stage()}
        row["seconds"] = round(time.monotonic() - began, 1)
        append_json(self.file, row)
        self.done[name] = row
