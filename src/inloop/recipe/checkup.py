"""What stands between this machine and a run: each check says what it saw, and the fix beside what failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from inloop.errors import InloopError
from inloop.progress import bar

EXTRAS = "pip install 'inloop[train,env,serve,report,data]', or `make quickstart` in a clone"
State = Literal["ok", "note", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    name: str
    state: State
    said: str
    fix: str = ""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    look: Callable[[], str]
    """What it saw, in a few words. Raises InloopError for what is wrong, and `Note` for what may be."""
    needs: tuple[str, ...] = ()
    """Checks without which this one makes no sense."""


class Note(InloopError):
    """Something to know that stops nothing."""


def examine(checks: Sequence[Check]) -> list[Finding]:
    """One finding a check, in order; what needs a failed one is skipped and says so."""
    found: dict[str, Finding] = {}
    with bar("doctor", len(checks)) as progress:
        for check in checks:
            found[check.name] = _one(check, found)
            progress.step(note=check.name)
    return list(found.values())


def _one(check: Check, found: dict[str, Finding]) -> Finding:
    missing = [n for n in check.needs if found[n].state in ("failed", "skipped")]
    if missing:
        return Finding(name=check.name, state="skipped", said=f"needs {', '.join(missing)}")
    began = time.monotonic()
    state: State = "ok"
    fix = ""
    try:
        said = check.look()
    except Note as note:
        state, said, fix = "note", note.message, note.fix or ""
    except InloopError as error:
        state, said, fix = "failed", error.message, error.fix or ""
    except ImportError as error:
        state, said, fix = "failed", str(error), EXTRAS
    except Exception as error:  # a doctor who dies of what he finds names nothing
        state, said = "failed", f"{type(error).__name__}: {str(error).strip()[-400:]}"
        fix = "this is not expected: please report it with `inloop doctor --json`"
    return Finding(name=check.name, state=state, said=said, fix=fix, seconds=round(time.monotonic() - began, 2))
