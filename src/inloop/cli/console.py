"""What every command prints: JSON for scripts on stdout, words for people, a closing line, errors with their fix."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

from inloop import progress

out = Console()


def emit(value: Any) -> None:
    """One JSON document on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def closing(written: str, then: str = "") -> None:
    """The last line of a stage: what was written and what to run next. Not printed with `--json`."""
    if progress.quiet:
        return
    out.print(f"[green]written[/green] {written}", highlight=False, soft_wrap=True)
    if then:
        out.print(f"[cyan]next[/cyan]    {then}", highlight=False, soft_wrap=True)


def quieten(json_output: bool) -> None:
    """Call it first in every command that has `--json`."""
    progress.quiet = json_output
