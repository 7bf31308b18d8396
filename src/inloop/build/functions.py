"""The functions of a repository that its tests reach: what `mutate` and `stub` work on."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inloop.build.audit import Auditor
from inloop.build.draft import Draft, Drop, assemble, divide
from inloop.build.instruct import bug_report
from inloop.build.pysource import Function, Module
from inloop.build.run import guarded
from inloop.build.source import Tree
from inloop.build.suite import Baseline, Job, JobResult, Lab, TestRun, functions_reached
from inloop.build.testsplit import TestFile
from inloop.tasks.task import Provenance, Task

MAX_TESTS = 40
"""Covering tests that a candidate is tried with."""


@dataclass(frozen=True)
class Covered:
    """A function and the passing tests that reach it, the most telling one first."""

    module: Module
    function: Function
    tests: tuple[TestRun, ...]


@dataclass(frozen=True)
class Broken:
    """A candidate: one file with one function broken."""

    key: str
    covered: Covered
    kind: str
    data: bytes = field(repr=False)

    @property
    def unit(self) -> str:
        return self.covered.function.unit


def covered(baseline: Baseline, dropped: Counter[str]) -> list[Covered]:
    """In file order; what is left out is counted in `dropped`."""
    out = []
    for path in baseline.tree.product_files:
        try:
            module = Module(path, baseline.tree.files[path])
        except SyntaxError:
            dropped["file does not parse"] += 1
            continue
        for function in module.functions():
            tests = functions_reached(baseline, path, function.first_line, function.last_line)
            if not tests:
                dropped["function that no passing test reaches"] += 1
            elif not function.body:
                dropped["function without a body"] += 1
            else:
                out.append(Covered(module, function, tuple(tests[:MAX_TESTS])))
    return out


def key_of(seed: int, unit: str, data: bytes) -> str:
    return hashlib.sha256(f"{seed}:{unit}:".encode() + data).hexdigest()[:12]


def short(name: str) -> str:
    """A repository's name as part of a task id."""
    return re.sub(r"[^a-z0-9]+", "-", name.removeprefix("pypi:").rsplit("/", 1)[-1].lower()).strip("-") or "repository"


Tell = Callable[[Broken, TestRun, TestFile, random.Random], str]


def tell_bug(candidate: Broken, test: TestRun, file: TestFile, rng: random.Random) -> str:
    return bug_report(test, file, rng)


@dataclass(frozen=True)
class Workshop:
    """Tries broken functions against their tests and makes tasks of those that the tests notice."""

    builder: str
    baseline: Baseline
    lab: Lab
    out: Path
    seed: int
    auditor: Auditor
    tell: Tell = tell_bug

    def attempt(self, batch: Sequence[Broken]) -> Iterator[tuple[Broken, Task | Drop]]:
        results = self.lab.run([self._job(c) for c in batch])
        yield from guarded(batch, lambda c: self._make(c, results.get(c.key)))

    def _job(self, candidate: Broken) -> Job:
        tests = candidate.covered.tests
        seconds = min(30.0, 10.0 + 5 * sum(t.seconds for t in tests))
        files = {candidate.covered.function.path: candidate.data}
        return Job(candidate.key, tuple(t.id for t in tests), files, seconds)

    def _make(self, candidate: Broken, result: JobResult | None) -> Task:
        failing, passing = _judged(candidate, result)
        rng = random.Random(f"{self.seed}:{candidate.key}")
        draft = self._draft(candidate, failing, passing)
        division = divide(draft, rng)
        file = division.files[division.shown.id.split("::")[0]]
        instruction = self.tell(candidate, division.shown, file, rng)
        task = assemble(draft, self.out, instruction, division)
        return self.auditor.admit(task)

    def _draft(self, candidate: Broken, failing: list[TestRun], passing: list[TestRun]) -> Draft:
        tree = self.baseline.tree
        return Draft(
            id=f"{short(tree.name)}-{self.builder}-{candidate.key}",
            tree=tree,
            broken={candidate.covered.function.path: candidate.data},
            failing=tuple(failing),
            passing=tuple(passing),
            all_ids=frozenset(self.baseline.tests),
            unusable=frozenset(self.baseline.dropped),
            provenance=provenance(tree, self.builder, self.seed, candidate.unit, candidate.kind),
        )


def _judged(candidate: Broken, result: JobResult | None) -> tuple[list[TestRun], list[TestRun]]:
    """(failing, passing) runs, the most telling one first. Raises Drop when no test notices, or all do by accident."""
    if result is None or result.exit == 124:
        raise Drop("runs for ever or is killed")
    if not result.tests:
        raise Drop("the module can't be imported any more")
    runs = [result.tests[t.id] for t in candidate.covered.tests if t.id in result.tests]
    failing = [r for r in runs if r.outcome in ("failed", "error")]
    if not failing:
        raise Drop("no covering test notices")
    return failing, [r for r in runs if r.outcome == "passed"]


def provenance(tree: Tree, builder: str, seed: int, unit: str, kind: str) -> Provenance:
    return Provenance(
        builder=builder,
        repository=tree.name,
        commit=tree.version,
        licence=tree.licence,
        seed=seed,
        unit=unit,
        kind=kind,
    )
