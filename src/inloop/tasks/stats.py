"""What a taskset holds, in counts and quartiles."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from inloop.tasks.taskset import Row

SIZES = ("words", "tests", "files", "bytes", "patch_lines")


def stats(rows: Sequence[Row]) -> dict[str, Any]:
    """Counts by kind, level, split, builder, repository and mode; quartiles of sizes and difficulty; the audits."""
    measured = [r.difficulty for r in rows if r.difficulty is not None]
    return {
        "tasks": len(rows),
        "units": len({(r.repository, r.unit) for r in rows}),
        "audited": sum(r.audited for r in rows),
        "kinds": _counts(r.kind for r in rows),
        "levels": _counts(r.level or "unknown" for r in rows),
        "splits": _counts(r.split or "none" for r in rows),
        "builders": _counts(str(r.provenance.get("builder", "")) for r in rows),
        "repositories": _counts(r.repository or "none" for r in rows),
        "licences": _counts(str(r.provenance.get("licence") or "unknown") for r in rows),
        "modes": _counts(r.mode for r in rows),
        "sizes": {name: quartiles([r.size[name] for r in rows if name in r.size]) for name in SIZES},
        "difficulty": quartiles(measured) | {"measured": len(measured)},
    }


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())


def quartiles(values: Sequence[float]) -> dict[str, float]:
    """min, quartiles, max; empty for no values."""
    if not values:
        return {}
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return {"min": min(values), "q1": low, "median": middle, "q3": high, "max": max(values)}
