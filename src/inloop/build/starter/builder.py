"""Builds tasks of the starter set: thousands of distinct ones from a library of small functions, one bug each."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inloop.build.audit import Auditor
from inloop.build.mutations import misspell
from inloop.build.patch import make_patch
from inloop.build.starter import render
from inloop.build.starter.breaks import KINDS, expected, plausible_lines
from inloop.build.starter.bundle import audit_all
from inloop.build.starter.library import Entry, entries
from inloop.build.starter.plan import MIX, Choice, Plan, check_mix, split_of
from inloop.build.starter.rename import choose, rename
from inloop.build.starter.trial import Outcome, attempt_all
from inloop.errors import TaskError
from inloop.progress import bar
from inloop.tasks.cards import why_unaudited
from inloop.tasks.folder import load_task, write_task
from inloop.tasks.task import Limits, Provenance, Task, VerifySpec

REPOSITORY = "inloop-starter"
LICENCE = "Apache-2.0"
COMMAND = "python -S -B check.py"
LIMITS = Limits(wall_seconds=300.0, command_seconds=10.0, cpu_seconds=60.0, memory_mb=256, processes=32)
TEST_SHARE = 0.25
VISIBLE = (2, 4)
MIN_HIDDEN = 6
TRIES = 40
"""Of one choice under other names, before it is dropped."""


@dataclass(frozen=True)
class Draft:
    """A task before it is written."""

    choice: Choice
    name: str
    """Of the function and its file, after renaming."""
    files: dict[str, str]
    """Workspace."""
    fixed: str
    tests: str
    test_names: tuple[str, ...]
    instruction: str
    difficulty: str


@dataclass
class Built:
    tasks: list[Task] = field(default_factory=list)
    kept: int = 0
    """Of them, tasks that an earlier run had written."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Reason -> candidates."""


def build_starter(
    out: Path,
    n: int,
    seed: int = 0,
    *,
    mix: Mapping[str, float] = MIX,
    test_share: float = TEST_SHARE,
    library: Sequence[Entry] | None = None,
    audit: bool = True,
    workers: int = 0,
) -> Built:
    """Write `n` task folders under `out`, split by function, and audit them; the same arguments give the same files.

    A task that is there already, byte for byte, is kept, and so is a card that is valid for it: a run that was
    interrupted goes on. `workers`: audits at once, 0 for one a core. Raises TaskError on bad arguments."""
    check_mix(mix, KINDS)
    if n < 1 or not 0 <= test_share < 1:
        raise TaskError(f"n = {n}, test share = {test_share}", fix="n of at least 1, a share in [0, 1)")
    built, seen = Built(), set[tuple[str, str]]()
    with bar("starter", n) as progress:
        for choice in _choices(entries() if library is None else library, n, seed, mix, test_share):
            draft = _distinct(choice, seen, built.dropped)
            if draft:
                built.tasks.append(_write(draft, Path(out), seed, len(built.tasks), built))
            progress.step()
    if audit:
        _audit(built, workers or os.cpu_count() or 1)
    return built


def _audit(built: Built, workers: int) -> None:
    """Give every task a card; one that fails is taken away again, and counted."""
    waiting = [t for t in built.tasks if why_unaudited(t)]
    with bar("audit", len(waiting)) as progress:
        done = {t.id: t for t in audit_all(waiting, Auditor(), workers, progress.step)}
    tasks = [done.get(t.id, t) for t in built.tasks]
    for task in tasks:
        if why := why_unaudited(task):
            built.dropped[why.split(":")[0]] += 1
            shutil.rmtree(task.root)
    built.tasks = [t for t in tasks if t.root.is_dir()]


def _choices(library: Sequence[Entry], n: int, seed: int, mix: Mapping[str, float], test_share: float) -> list[Choice]:
    splits = split_of(library)
    counts = {"train": n - round(n * test_share), "test": round(n * test_share)}
    out = []
    for split, count in counts.items():
        members = [e for e in library if splits[e.unit] == split]
        if count:
            out += Plan(members, split, random.Random(f"{seed}:{split}"), mix).deal(count)
    return out


def _distinct(choice: Choice, seen: set[tuple[str, str]], dropped: Counter[str]) -> Draft | None:
    """The choice under names that make it a task of its own; every try that fails is counted."""
    rng = random.Random(choice.seed)
    for _ in range(TRIES):
        draft, reason = _draft(choice, rng)
        if draft:
            key = (draft.files[f"{draft.name}.py"], draft.fixed)
            if key not in seen:
                seen.add(key)
                return draft
            reason = "same as another task"
        dropped[reason] += 1
    return None


def _draft(choice: Choice, rng: random.Random) -> tuple[Draft | None, str]:
    """A draft, or '' and why there is none."""
    entry, change = choice.entry, choice.change
    names = choose(entry.source, entry.name, rng)
    wrong_names = dict(names)
    if change.misspelt and change.misspelt[0] in names:
        slip = _slip(names[change.misspelt[0]], change.misspelt)
        wrong_names[change.misspelt[1]] = slip
    fixed, broken = rename(entry.source, names), rename(change.source, wrong_names)
    name = names.get(entry.name, entry.name)
    wrong = attempt_all(broken, name, entry.cases)
    right = expected(entry)
    failing = [i for i, (w, r) in enumerate(zip(wrong, right, strict=True)) if not w.agrees(r.value)]
    if tuple(failing) != change.failing or any(o.error == "Stuck" for o in wrong):
        return None, "fails otherwise under other names"
    visible, hidden = _divide(len(entry.cases), failing, rng)
    tests, test_names = render.hidden_tests(name, [entry.cases[i] for i in hidden], [right[i] for i in hidden])
    check = render.check_file(name, [entry.cases[i] for i in visible], [right[i] for i in visible])
    first = next(i for i in visible if i in failing)
    return Draft(
        choice=choice,
        name=name,
        files={f"{name}.py": broken, "check.py": check},
        fixed=fixed,
        tests=tests,
        test_names=tuple(test_names),
        instruction=render.instruction(name, entry.cases[first], right[first], wrong[first]),
        difficulty=_difficulty(choice, wrong[first]),
    ), ""


def _slip(name: str, misspelt: tuple[str, str]) -> str:
    """What the same slip of the fingers makes of another name."""
    return misspell(name) if len(name) >= 4 else name + name[-1]


def _divide(count: int, failing: Sequence[int], rng: random.Random) -> tuple[list[int], list[int]]:
    """(visible, hidden) numbers of cases, a failing one in both; the others are dealt at random."""
    seen, unseen = rng.sample(failing, 2)
    others = [i for i in range(count) if i not in (seen, unseen)]
    rng.shuffle(others)
    more = min(rng.randint(*VISIBLE) - 1, count - MIN_HIDDEN - 1)
    return sorted([seen, *others[:more]]), sorted([unseen, *others[more:]])


def _difficulty(choice: Choice, first: Outcome) -> str:
    """named: the traceback says what to mend; pointed: it says where, or few lines can be meant; open: the rest."""
    if choice.change.kind == "misspelling":
        return "named"
    says_where = bool(first.error) and choice.change.raises
    return "pointed" if says_where or plausible_lines(choice.entry) <= 2 else "open"


def _write(draft: Draft, out: Path, seed: int, number: int, built: Built) -> Task:
    root = out / f"{draft.name}-{seed}-{number:04d}"
    test_file = f"test_{draft.name}.py"
    task = Task(
        id=root.name,
        root=root,
        instruction=draft.instruction,
        limits=LIMITS,
        verify=VerifySpec(
            mode="split",
            modules=(draft.name,),
            tests=(test_file,),
            expected=tuple(f"{test_file}::{t}" for t in draft.test_names),
            allow=(f"{draft.name}.py",),
            cpu_seconds=2.0,
            wall_seconds=30.0,
        ),
        test_command=COMMAND,
        provenance=_provenance(draft, seed),
        split=draft.choice.split,
        meta=_meta(draft),
    )
    module = f"{draft.name}.py"
    patch = make_patch({module: draft.files[module].encode()}, {module: draft.fixed.encode()})
    if (same := _there(task, draft, patch)) is not None:
        built.kept += 1
        return same
    return write_task(task, workspace=draft.files, tests={test_file: draft.tests}, solution={"patch.diff": patch})


def _provenance(draft: Draft, seed: int) -> Provenance:
    entry, kind = draft.choice.entry, draft.choice.change.kind
    return Provenance(builder="starter", repository=REPOSITORY, licence=LICENCE, seed=seed, unit=entry.unit, kind=kind)


def _meta(draft: Draft) -> dict[str, Any]:
    return {
        "difficulty": draft.difficulty,
        "plausible_lines": plausible_lines(draft.choice.entry),
        "lines": draft.fixed.count("\n"),
    }


def _there(task: Task, draft: Draft, patch: str) -> Task | None:
    """The task as an earlier run left it, with its card, if nothing of it has changed."""
    if not (task.root / "task.toml").is_file():
        return None
    try:
        old = load_task(task.root)
        texts = {p.name: p.read_text("utf-8") for p in task.workspace.iterdir()}
        rest = (
            (task.tests / task.verify.tests[0]).read_text("utf-8"),
            (task.solution / "patch.diff").read_text("utf-8"),
        )
    except (OSError, TaskError, UnicodeDecodeError):
        return None
    same = replace(old, card=None, difficulty=None) == replace(task, root=old.root, instruction=old.instruction)
    unchanged = old.instruction == task.instruction and texts == draft.files and rest == (draft.tests, patch)
    return old if same and unchanged else None
