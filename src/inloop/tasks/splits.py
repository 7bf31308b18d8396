"""Splits go by source unit, never by instance: no function is in two of them, and that is checked, not hoped."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal

from inloop.errors import TaskError
from inloop.tasks.taskset import Row

By = Literal["function", "file", "commit", "repository"]
BLOCKED = "blocked"
"""The split of tasks that nothing may use; it shares units with the others."""


def group_of(row: Row, by: By) -> str:
    """The unit that must not be divided, named together with its repository."""
    unit = row.unit
    if by == "repository":
        return row.repository or unit
    if by == "file":
        unit = unit.split("::")[0]
    if by == "commit":
        unit = str(row.provenance.get("commit") or unit)
    return f"{row.repository}@{unit}"


def parse_shares(text: str) -> dict[str, float]:
    """'train=0.8,test=0.2' -> shares that sum to 1. Raises TaskError."""
    try:
        pairs = [part.split("=") for part in text.split(",") if part.strip()]
        shares = {name.strip(): float(share) for name, share in pairs}
    except ValueError:
        raise TaskError(f"'{text}' is no list of shares", fix="write train=0.8,test=0.2") from None
    if not shares or min(shares.values()) <= 0 or abs(sum(shares.values()) - 1) > 1e-6 or "" in shares:
        raise TaskError(f"'{text}': shares must be positive and sum to 1", fix="write train=0.8,test=0.2")
    return shares


def assign(
    rows: Iterable[Row], shares: Mapping[str, float], *, by: By = "function", seed: int = 0, reset: bool = False
) -> dict[str, str]:
    """Task id -> split. Units are dealt in an order that the seed gives, each to the split that lacks most tasks;
    units that have a split keep it unless `reset`. Raises TaskError if a unit is already in two splits, or if there
    are fewer units than splits."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if reset or row.split != BLOCKED:
            groups[group_of(row, by)].append(row)
    if len(groups) < len(shares):
        raise TaskError(
            f"{len(groups)} source units can't fill {len(shares)} splits", fix="build tasks from more functions"
        )
    kept = {} if reset else _kept(groups, shares)
    filled = Counter(dict.fromkeys(shares, 0))
    filled.update({s: sum(len(groups[g]) for g, x in kept.items() if x == s) for s in set(kept.values())})
    total = sum(len(members) for members in groups.values())
    waiting = sorted(groups.keys() - kept.keys(), key=lambda g: _order(seed, g))
    for left, group in zip(range(len(waiting), 0, -1), waiting, strict=True):
        empty = [s for s in shares if not filled[s]]
        among = empty if len(empty) >= left else list(shares)
        name = max(among, key=lambda s: (shares[s] * total - filled[s], s))
        kept[group] = name
        filled[name] += len(groups[group])
    return {row.id: kept[group] for group, members in groups.items() for row in members}


def _order(seed: int, group: str) -> str:
    return hashlib.sha256(f"{seed}:{group}".encode()).hexdigest()


def _kept(groups: Mapping[str, list[Row]], shares: Mapping[str, float]) -> dict[str, str]:
    kept = {}
    for group, members in groups.items():
        names = {row.split for row in members if row.split}
        if len(names) > 1:
            raise TaskError(f"{group} is already in {' and '.join(sorted(names))}", fix="split again with --reset")
        if names and (name := names.pop()) in shares:
            kept[group] = name
    return kept


def check_disjoint(rows: Iterable[Row], by: By = "function") -> Counter[str]:
    """Tasks of each split, once it is proved that no unit is in two. Raises TaskError naming the units that are."""
    where: dict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.split] += 1
        if row.split not in ("", BLOCKED):
            where[group_of(row, by)].add(row.split)
    shared = {group: names for group, names in where.items() if len(names) > 1}
    if shared:
        group, names = next(iter(sorted(shared.items())))
        raise TaskError(
            f"{len(shared)} source units are in more than one split, such as {group} in {', '.join(sorted(names))}",
            fix="inloop tasks split DIR --reset",
        )
    return counts
