"""What was not taken, with the place and the reason: nothing is dropped without one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inloop.files import write_atomic


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    file: str
    line: int
    """1-based; 0 is the whole file."""
    reason: str
    kind: str = "line"
    """line, torn, file, trajectory, record, block, duplicate, part: what was left out."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def write_skipped(path: Path, skipped: Iterable[Skipped]) -> None:
    """`skipped.jsonl`: one line for each, in the order in which they were met."""
    write_atomic(path, "".join(json.dumps(s.to_dict(), ensure_ascii=False) + "\n" for s in skipped))


def tally(skipped: Iterable[Skipped]) -> dict[str, int]:
    """Reason -> how many, most frequent first."""
    return dict(Counter(s.reason for s in skipped).most_common())
