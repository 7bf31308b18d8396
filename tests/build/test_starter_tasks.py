"""Tasks of the starter set: the same files for the same seed, checks that say one thing, hidden tests that decide."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inloop.build.audit import Auditor
from inloop.build.starter import builder
from inloop.build.starter.bundle import audit_bundle, bundles
from inloop.build.starter.library import entries
from inloop.build.starter.plan import MIX, split_of
from inloop.errors import TaskError
from inloop.tasks.cards import why_unaudited
from inloop.tasks.folder import load_task, save_metadata
from inloop.tasks.splits import check_disjoint
from inloop.tasks.task import Task
from inloop.tasks.taskset import row_of
from inloop.verify.oracle import oracle_diff

LIBRARY = entries()[::9]
N = 40


def build(out: Path, n: int = N, seed: int = 1, **kw: Any) -> builder.Built:
    return builder.build_starter(out, n, seed, library=LIBRARY, audit=False, **kw)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    return build(tmp_path_factory.mktemp("starter")).tasks


def files(task: Task) -> dict[str, bytes]:
    return {p.relative_to(task.root).as_posix(): p.read_bytes() for p in task.root.rglob("*") if p.is_file()}


def checks(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-B", "check.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def hidden(task: Task, module: str) -> list[bool]:
    """Which hidden tests pass on a source of the module: both are ours."""
    tests, namespace, out = task.tests / task.verify.tests[0], dict[str, Any](), []
    exec(module, namespace)
    source = tests.read_text()
    first, rest = source.split("\n", 1)
    assert first == f"from {task.verify.modules[0]} import {task.verify.modules[0]}"
    exec(rest, namespace)
    for test in task.verify.expected:
        try:
            namespace[test.partition("::")[2]]()
            out.append(True)
        except Exception:
            out.append(False)
    return out


def test_the_same_seed_gives_the_same_files(built: list[Task], tmp_path: Path) -> None:
    again, other = build(tmp_path / "a").tasks, build(tmp_path / "b", seed=2).tasks
    assert [files(t) for t in again] == [files(t) for t in built]
    assert [t.instruction for t in other] != [t.instruction for t in built]


def test_what_is_there_is_kept_and_what_is_gone_or_changed_is_made_again(tmp_path: Path) -> None:
    first = build(tmp_path, 8).tasks
    save_metadata(replace(first[2], difficulty=0.5))
    (first[0].root / "task.toml").unlink()
    (first[1].workspace / "check.py").write_text("print('changed')")
    second = build(tmp_path, 8)
    assert second.kept == 6 and second.tasks[2].difficulty == 0.5
    assert files(second.tasks[1]) != {} and "changed" not in (first[1].workspace / "check.py").read_text()
    assert [t.id for t in second.tasks] == [t.id for t in first]


def test_no_two_tasks_are_the_same(built: list[Task]) -> None:
    assert len(built) == N == len({t.id for t in built})
    assert len({(t.workspace / f"{t.verify.modules[0]}.py").read_text() for t in built}) == N


def test_splits_are_disjoint_and_have_the_same_kinds(built: list[Task]) -> None:
    assert check_disjoint(row_of(t, t.root.parent) for t in built) == {"train": 30, "test": 10}
    units = split_of(LIBRARY)
    assert all(units[t.provenance.unit] == t.split for t in built)
    kinds = Counter((t.split, t.provenance.kind) for t in built)
    assert kinds["train", "misspelling"] == 12 and kinds["test", "misspelling"] == 4
    assert {t.meta["difficulty"] for t in built} >= {"named", "open"}


def test_checks_are_short_and_fail_until_it_is_mended(built: list[Task]) -> None:
    for task in built[:16]:
        before = checks(task.workspace)
        assert before.returncode == 1 and before.stdout.startswith("FAIL ") and not before.stderr
        assert len(before.stdout) < 400 and before.stdout.count("\n") <= 2
        if task.meta["difficulty"] == "named":
            assert "Error: " in before.stdout and "\nline " in before.stdout


def test_the_solution_passes_what_the_agent_sees_and_what_it_does_not(built: list[Task], tmp_path: Path) -> None:
    for task in built[:16]:
        module = f"{task.verify.modules[0]}.py"
        broken, fixed = (task.workspace / module).read_text(), oracle_diff(task).changed[module].decode()
        assert all(hidden(task, fixed)) and not all(hidden(task, broken))
        work = tmp_path / task.id
        work.mkdir()
        (work / "check.py").write_text((task.workspace / "check.py").read_text())
        (work / module).write_text(fixed)
        after = checks(work)
        assert after.returncode == 0 and after.stdout.startswith("ok ") and not after.stderr
        assert sum(a != b for a, b in zip(broken.splitlines(), fixed.splitlines(), strict=False)) >= 1


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(x):\n    return x +\n", "SyntaxError: invalid syntax\nline 2: return x +\n"),
        ("def g(x):\n    return x\n", "FAIL f(1): NameError: name 'f' is not defined\n"),
        ("def f(x):\n    while x:\n        pass\n", "FAIL f(1): TimeoutError: took too long\nline 2: while x:\n"),
        ("def f(x):\n    return [x, y]\n", "FAIL f(1): NameError: name 'y' is not defined\nline 2: return [x, y]\n"),
        ("def f(x):\n    return True\n", "FAIL f(1) -> True, expected 1\n"),
        ("def f(x):\n    return 'a' * 90\n", f"FAIL f(1) -> '{'a' * 59}, expected 1\n"),
        ("def f(x):\n    return x\n", "ok 1 passed\n"),
    ],
)
def test_what_the_checks_say(tmp_path: Path, source: str, said: str) -> None:
    from inloop.build.starter.render import check_file
    from inloop.build.starter.trial import Outcome

    (tmp_path / "f.py").write_text(source)
    (tmp_path / "check.py").write_text(check_file("f", [(1,)], [Outcome(value=1)]))
    run = checks(tmp_path)
    told = run.stdout.replace("line 3: pass", "line 2: while x:")  # either line may be the one that is stopped
    assert (told, run.stderr, run.returncode) == (said, "", int(not said.startswith("ok")))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["check.py", "f.py"]


def test_the_instruction_tells_the_behaviour_and_not_the_line(built: list[Task]) -> None:
    for task in built:
        name = task.verify.modules[0]
        assert task.instruction.startswith(f"{name}(") and f"Fix {name}.py." in task.instruction
        fixed = oracle_diff(task).changed[f"{name}.py"].decode().splitlines()
        broken = (task.workspace / f"{name}.py").read_text().splitlines()
        assert not any(line.strip() in task.instruction for line in fixed if line not in broken)


@pytest.mark.parametrize(
    ("fields", "word"),
    [({"n": 0}, "n = 0"), ({"mix": {"typo": 1.0}}, "typo"), ({"mix": {"operator": 0.0}}, "share 0"),
     ({"mix": {"operator": -1.0}}, "-1"), ({"test_share": 1.0}, "test share")],
)  # fmt: skip
def test_bad_arguments_are_named(tmp_path: Path, fields: dict[str, Any], word: str) -> None:
    with pytest.raises(TaskError, match=word):
        build(tmp_path, **fields)
    assert not list(tmp_path.iterdir())


def test_the_mix_is_kept_where_it_can_be(tmp_path: Path) -> None:
    tasks = build(tmp_path, 10, mix={"operator": 3, "misspelling": 1}, test_share=0.0).tasks
    assert Counter(t.provenance.kind for t in tasks) == {"operator": 8, "misspelling": 2} or Counter(
        t.provenance.kind for t in tasks
    ) == {"operator": 7, "misspelling": 3}
    assert abs(sum(MIX.values()) - 1) < 1e-9


def test_a_bundle_holds_no_two_modules_of_a_name(built: list[Task]) -> None:
    doubled = [*built[:6], *built[:6]]
    parts = bundles(doubled, size=4)
    assert sorted(t.id for part in parts for t in part) == sorted(t.id for t in doubled)
    assert all(len(part) <= 4 and len({m for t in part for m in t.verify.modules}) == len(part) for part in parts)


@pytest.mark.slow
def test_bundled_audits_give_valid_cards_and_find_what_is_wrong(tmp_path: Path) -> None:
    tasks = build(tmp_path, 5).tasks
    useless, passing = tasks[1], tasks[3]
    _no_solution(useless)
    (passing.tests / passing.verify.tests[0]).write_text(_tests_that_pass(passing))
    audited = audit_bundle([load_task(t.root) for t in tasks], Auditor())
    told = {t.id: why_unaudited(load_task(t.root)) for t in audited}
    assert "oracle fails" in told.pop(useless.id) and "doing nothing passes" in told.pop(passing.id)
    assert set(told.values()) == {""}
    card = audited[0].card
    assert card and card.ok and all(card.checks.values()) and "in one sandbox" in card.isolation
    assert (audited[0].tests / "twins.json").is_file()


def _no_solution(task: Task) -> None:
    """Its patch changes another thing than the bug."""
    path = task.workspace / f"{task.verify.modules[0]}.py"
    first = path.read_text().split("\n")[0]
    patch = f"--- a/{path.name}\n+++ b/{path.name}\n@@ -1 +1 @@\n-{first}\n+{first}  # mended\n"
    (task.solution / "patch.diff").write_text(patch)


def _tests_that_pass(task: Task) -> str:
    name = task.verify.modules[0]
    tests = [t.partition("::")[2] for t in task.verify.expected]
    bodies = "".join(f"\n\ndef {t}():\n    assert {name} is not None and len('ab') == 2\n" for t in tests)
    return f"from {name} import {name}\n{bodies}"
