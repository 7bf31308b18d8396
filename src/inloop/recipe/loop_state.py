"""What a loop remembers: an append-only ledger of rounds, and a pointer to the checkpoint that was promoted last."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop.files import append_json, read_json_lines

LEDGER = "loop.jsonl"
CURRENT = "current"


@dataclass
class Round:
    number: int
    sessions: tuple[str, ...]
    """Ids of the trajectories that are new in it."""
    closed: bool = False
    promoted: bool = False
    reasons: tuple[str, ...] = ()
    """Why it was not promoted."""
    checkpoint: str = ""
    """Relative to the loop's folder; '' when nothing was trained."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.number:04d}"


@dataclass
class State:
    """The ledger says what is true; the pointer follows it, and is mended when a loop was killed between the two."""

    root: Path
    rounds: list[Round] = field(default_factory=list)

    @classmethod
    def read(cls, root: Path) -> State:
        state = cls(root)
        file = root / LEDGER
        for _, row in read_json_lines(file) if file.is_file() else ():
            state._take(row)
        state.point()
        return state

    def _take(self, row: dict[str, Any]) -> None:
        if row["event"] == "opened":
            self.rounds.append(Round(row["round"], tuple(row["sessions"])))
            return
        for one in self.rounds:
            if one.number == row["round"]:
                one.closed, one.promoted = True, row["promoted"]
                one.reasons, one.checkpoint = tuple(row["reasons"]), row["checkpoint"]
                one.facts = row["facts"]

    @property
    def open(self) -> Round | None:
        """The round that was begun and has no end yet."""
        return next((r for r in self.rounds if not r.closed), None)

    @property
    def promoted(self) -> Round | None:
        """The newest round whose checkpoint was promoted."""
        return next((r for r in reversed(self.rounds) if r.promoted), None)

    def taken(self) -> Iterator[str]:
        """Sessions that a round has had."""
        for one in self.rounds:
            yield from one.sessions

    def begin(self, sessions: tuple[str, ...]) -> Round:
        one = Round(len(self.rounds) + 1, sessions)
        append_json(self.root / LEDGER, {"event": "opened", "round": one.number, "sessions": list(sessions)})
        self.rounds.append(one)
        return one

    def close(self, one: Round, *, promoted: bool, reasons: tuple[str, ...], checkpoint: str, facts: Any) -> None:
        row = {"promoted": promoted, "reasons": list(reasons), "checkpoint": checkpoint, "facts": facts}
        append_json(self.root / LEDGER, {"event": "closed", "round": one.number, **row})
        self._take({"event": "closed", "round": one.number, **row})
        self.point()

    def point(self) -> None:
        """`current` is a link to the promoted checkpoint, swapped in one step."""
        if (newest := self.promoted) is None:
            return
        link, fresh = self.root / CURRENT, self.root / f".{CURRENT}.new"
        if link.is_symlink() and os.readlink(link) == newest.checkpoint:  # noqa: PTH115
            return
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(newest.checkpoint)
        fresh.replace(link)
