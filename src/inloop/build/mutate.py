"""`mutate`: bugs put into functions that the repository's own tests cover."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from inloop.build.functions import Broken, Covered, key_of
from inloop.build.mutations import KINDS, Mutation, candidates, mutate, several
from inloop.errors import TaskError

TRIES = 12
"""Candidates of one function at most."""


def plan(functions: Sequence[Covered], seed: int, kinds: Sequence[str], dropped: Counter[str]) -> list[Broken]:
    """Candidates in the order in which they are tried: one of each function, then a second one of each, ..."""
    wanted = check_kinds(kinds)
    order = sorted(functions, key=lambda c: key_of(seed, c.function.unit, b""))
    queues = [_of_function(c, seed, wanted, dropped) for c in order]
    return [queue[r] for r in range(TRIES) for queue in queues if r < len(queue)]


def check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """The kinds asked for, or all. Raises TaskError for a name that is none."""
    for kind in kinds:
        if kind not in KINDS:
            raise TaskError(f"'{kind}' is no kind of mutation", fix="one of " + ", ".join(KINDS))
    return tuple(kinds) or KINDS


def _of_function(covered: Covered, seed: int, kinds: tuple[str, ...], dropped: Counter[str]) -> list[Broken]:
    rng = random.Random(f"{seed}:{covered.function.unit}")
    singles = candidates(covered.module, covered.function)
    chosen = _balanced([m for m in singles if m.kind in kinds], rng)
    if "several" in kinds and (both := several(singles, rng)):
        chosen.insert(rng.randrange(min(len(chosen), 4) + 1), both)
    if not chosen:
        dropped["function with nothing to mutate"] += 1
    out: dict[bytes, Broken] = {}
    for mutation in chosen[:TRIES]:
        data = mutate(covered.module, mutation)
        if data not in out:
            out[data] = Broken(key_of(seed, covered.function.unit, data), covered, mutation.kind, data)
    return list(out.values())


def _balanced(mutations: list[Mutation], rng: random.Random) -> list[Mutation]:
    """Shuffled so that the kinds take turns: most mutations are misspellings, most tasks should not be."""
    by_kind: dict[str, list[Mutation]] = {}
    for mutation in rng.sample(mutations, len(mutations)):
        by_kind.setdefault(mutation.kind, []).append(mutation)
    queues = [by_kind[k] for k in rng.sample(sorted(by_kind), len(by_kind))]
    return [queue[r] for r in range(max(map(len, queues), default=0)) for queue in queues if r < len(queue)]
