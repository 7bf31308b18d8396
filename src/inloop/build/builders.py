"""The builders as a person calls them: a source, how many tasks, where to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from inloop.build import mutate, stub
from inloop.build.audit import Auditor
from inloop.build.functions import Broken, Workshop, covered, short, tell_bug
from inloop.build.run import FOLDER, Plan, Report, build
from inloop.build.source import Tree, open_source, with_metadata
from inloop.build.suite import Baseline, TestRun, baseline, lab
from inloop.errors import TaskError
from inloop.files import write_json
from inloop.progress import bar


def build_functions(
    builder: Literal["mutate", "stub"],
    spec: str,
    out: Path,
    n: int,
    *,
    seed: int = 0,
    kinds: Sequence[str] = (),
    per_unit: int = 4,
    workers: int = 2,
    audit: bool = True,
) -> Report:
    """`mutate` or `stub` over the functions that a repository's own passing tests reach.

    Raises TaskError for a source that can't be had, has no tests, or whose suite can't run."""
    mutate.check_kinds(kinds)
    tree = open_source(spec)
    suite = cached_baseline(tree, out / FOLDER)
    dropped = Counter({f"{why} (suite)": n for why, n in Counter(suite.dropped.values()).items()})
    dropped.update({f"file left out: {why}": n for why, n in Counter(why for _, why in tree.skipped).items()})
    functions = covered(suite, dropped)
    if not functions:
        raise TaskError(f"{tree.name}: no function is reached by a passing test", fix="use another package")
    if builder == "mutate":
        candidates: list[Broken] = mutate.plan(functions, seed, kinds, dropped)
    else:
        candidates = stub.plan(functions, seed, dropped)
    with lab(suite.tree, f"build {builder} {tree.name}") as place:
        tell = tell_bug if builder == "mutate" else stub.tell
        shop = Workshop(builder, suite, place, out, seed, Auditor(audit), tell)
        plan = Plan(
            name=f"{builder}-{short(tree.name)}",
            config=config_of(builder, tree, seed, kinds=list(kinds), per_unit=per_unit, audit=audit),
            candidates=candidates,
            attempt=shop.attempt,
            dropped=dropped,
            per_unit=per_unit if builder == "mutate" else 1,
            stop=shop.auditor.stop,
        )
        return build(plan, out, n, workers=workers)


def config_of(builder: str, tree: Tree, seed: int, **more: Any) -> dict[str, Any]:
    return {
        "builder": builder,
        "source": tree.name,
        "version": tree.version,
        "tree": digest(tree),
        "seed": seed,
        **more,
    }


def digest(tree: Tree) -> str:
    out = sha256()
    for path, data in sorted(tree.files.items()):
        out.update(f"{path}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    return out.hexdigest()


def cached_baseline(tree: Tree, folder: Path) -> Baseline:
    """The suite's run, kept in `folder` for the next build of the same tree."""
    path = folder / f"suite-{short(tree.name)}-{digest(tree)[:12]}.json"
    if path.is_file():
        return _load(tree, json.loads(path.read_text()))
    with bar(f"run the tests of {tree.name}", 1) as progress:
        found = baseline(tree, f"suite of {tree.name}")
        progress.step(note=f"{len(found.tests)} pass")
    tests = [asdict(t) | {"reached": sorted(t.reached)} for t in found.tests.values()]
    write_json(path, {"tests": tests, "dropped": found.dropped, "seconds": found.seconds})
    return found


def _load(tree: Tree, data: dict[str, Any]) -> Baseline:
    tests = [
        TestRun(**t | {"reached": frozenset((p, n) for p, n in t["reached"]), "params": ()}) for t in data["tests"]
    ]
    return Baseline(with_metadata(tree), {t.id: t for t in tests}, data["dropped"], data["seconds"])
