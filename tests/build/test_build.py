"""From a repository to audited tasks: mutate, stub, resume, determinism, and a task solved by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from inloop.build.audit import Auditor, check_all, reasons_table
from inloop.build.builders import build_functions
from inloop.build.run import Report
from inloop.build.testsplit import TestFile
from inloop.errors import DataError, TaskError
from inloop.tasks.cards import require_cards
from inloop.tasks.folder import load_task
from inloop.tasks.splits import assign, check_disjoint
from inloop.tasks.taskset import Taskset

POCKET = Path(__file__).parents[1] / "data" / "build" / "pocket"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("mutated")]


def test_what_is_kept_is_audited_and_says_where_it_is_from(mutated: Report) -> None:
    tasks = list(Taskset.open(mutated.out).tasks())
    assert len(tasks) == 4 == len(mutated.kept)
    assert require_cards(tasks) == tasks, "every card is valid: the ceiling is 100 %"
    for task in tasks:
        assert task.card is not None and all(task.card.checks.values())
        assert set(task.card.checks) == {
            "instruction", "no_leak", "oracle", "noop_fails", "skip_fails", "repeats_agree"
        }  # fmt: skip
        assert task.card.seconds > 0 and task.card.memory_mb > 0 and "bubblewrap" in task.card.isolation
        origin = task.provenance
        assert (origin.builder, origin.repository, origin.licence, origin.seed) == ("mutate", "pocket", "MIT", 1)
        assert origin.unit.startswith("pocket/") and "::" in origin.unit and origin.kind


def test_hidden_tests_are_cut_out_of_the_workspace_and_visible_ones_stay(mutated: Report) -> None:
    for task in Taskset.open(mutated.out).tasks():
        for name in task.verify.tests:
            hidden = TestFile(name, (task.tests / name).read_bytes())
            visible_path = task.workspace / "tests" / name
            visible = set(TestFile(name, visible_path.read_bytes()).functions) if visible_path.is_file() else set()
            assert hidden.functions and not visible & set(hidden.functions)
            original = TestFile(name, (POCKET / "tests" / name).read_bytes())
            assert visible | set(hidden.functions) == set(original.functions)


def test_the_solution_is_the_reverse_patch_and_formatting_is_kept(mutated: Report) -> None:
    for task in Taskset.open(mutated.out).tasks():
        path = task.provenance.unit.split("::")[0]
        broken, right = (task.workspace / path).read_bytes(), (POCKET / path).read_bytes()
        assert broken != right
        copy = shutil.copytree(task.workspace, task.root.parent / f".copy-{task.id}")
        try:
            subprocess.run(["bash", str(task.solution / "solve.sh"), str(copy)], check=True, capture_output=True)
            assert (copy / path).read_bytes() == right, "solve.sh restores every byte"
        finally:
            shutil.rmtree(copy)


def test_the_instruction_tells_the_behaviour_and_not_the_fix(mutated: Report) -> None:
    for task in Taskset.open(mutated.out).tasks():
        patch = (task.solution / "patch.diff").read_text()
        added = [x[1:].strip() for x in patch.splitlines() if x.startswith("+") and not x.startswith("+++")]
        assert all(len(line) < 12 or line not in task.instruction for line in added)
        assert "```" in task.instruction or "`test_" in task.instruction
        assert task.provenance.unit.split("::")[0] not in task.instruction


def test_the_same_seed_builds_the_same_tasks_and_another_one_others(mutated: Report, tmp_path: Path) -> None:
    again = build_functions("mutate", str(POCKET), tmp_path / "a", 2, seed=1, workers=1, audit=False)
    assert again.kept == mutated.kept[:2]
    for task_id in again.kept:
        first, second = load_task(mutated.out / task_id), load_task(again.out / task_id)
        assert first.instruction == second.instruction and first.verify == second.verify
        assert (first.workspace / "pocket/text.py").read_bytes() == (second.workspace / "pocket/text.py").read_bytes()
    other = build_functions("mutate", str(POCKET), tmp_path / "b", 2, seed=2, audit=False)
    assert set(other.kept).isdisjoint(again.kept)


def test_an_interrupted_build_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = build_functions("mutate", str(POCKET), out, 2, seed=5, audit=False)
    ledger = out / ".build/mutate-pocket.jsonl"
    ledger.write_text(ledger.read_text() + '{"key": "torn')
    lines = ledger.read_text().count("\n")
    made = {t: (out / t / "task.toml").stat().st_mtime_ns for t in first.kept}
    second = build_functions("mutate", str(POCKET), out, 4, seed=5, audit=False)
    assert second.kept[:2] == first.kept and len(second.kept) == 4 and ledger.read_text().count("\n") > lines
    assert made == {t: (out / t / "task.toml").stat().st_mtime_ns for t in first.kept}
    assert [r.id for r in Taskset.open(out).rows] == second.kept
    with pytest.raises(DataError, match="begun with another seed"):
        build_functions("mutate", str(POCKET), out, 4, seed=6, audit=False)


def test_drops_are_counted_with_their_reason(mutated: Report) -> None:
    written = json.loads((mutated.out / ".build/mutate-pocket.drops.json").read_text())
    assert written["not_candidates"]["function that no passing test reaches"] == 1
    assert written["not_candidates"]["test fails as it stands (suite)"] == 1
    ledger = [json.loads(x) for x in (mutated.out / ".build/mutate-pocket.jsonl").read_text().splitlines()[1:]]
    assert Counter(e["drop"] for e in ledger if "drop" in e) == Counter(written["drops"])
    assert len(ledger) == written["tried"]


def test_stub_keeps_signature_and_docstring(tmp_path: Path) -> None:
    report = build_functions("stub", str(POCKET), tmp_path, 2, audit=True)
    assert len(report.kept) == 2
    for task in Taskset.open(tmp_path).tasks():
        path, _, name = task.provenance.unit.partition("::")
        text = (task.workspace / path).read_text()
        assert text.count("raise NotImplementedError") == 1 and task.provenance.kind == "stub"
        assert f"`{name}`" in task.instruction and task.is_audited
        assert text.count('"""') == (POCKET / path).read_text().count('"""')


def test_units_split_without_overlap(mutated: Report, tmp_path: Path) -> None:
    out = Path(shutil.copytree(mutated.out, tmp_path / "set"))
    tasks = Taskset.open(out)
    tasks.assign(assign(tasks.rows, {"train": 0.5, "test": 0.5}))
    placed = Taskset.open(out)
    assert set(check_disjoint(placed.rows)) == {"train", "test"}
    assert all(t.is_audited for t in placed.tasks()), "a split is no change of content"


def verify(task: Path, workspace: Path) -> tuple[int, dict[str, object]]:
    command = [sys.executable, "-m", "inloop.cli.main", "verify", str(task), str(workspace), "--json"]
    code = "import sys; sys.argv[0] = 'inloop'; from inloop.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *command[3:]], capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_solved_by_hand_through_inloop_verify(mutated: Report, tmp_path: Path) -> None:
    task = load_task(mutated.out / mutated.kept[0])
    work = Path(shutil.copytree(task.workspace, tmp_path / "work"))
    code, empty = verify(task.root, work)
    assert (code, empty["value"], empty["verdict"]) == (1, 0.0, "failed"), "nothing done is not paid"
    path = work / task.provenance.unit.split("::")[0]
    broken = path.read_text()
    path.write_text(broken + "\n\ndef unrelated():\n    return 1\n")
    code, wrong = verify(task.root, work)
    assert (code, wrong["value"]) == (1, 0.0), "a wrong patch is not paid"
    path.write_bytes((POCKET / task.provenance.unit.split("::")[0]).read_bytes())
    code, right = verify(task.root, work)
    assert (code, right["value"], right["verdict"]) == (0, 1.0, "passed")


def test_the_audit_refuses_what_it_should(mutated: Report, tmp_path: Path) -> None:
    """One fault each in a copy of a good task; the audit names it."""
    good = load_task(mutated.out / mutated.kept[0])
    path = good.provenance.unit.split("::")[0]
    right = (POCKET / path).read_bytes()
    patch = (good.solution / "patch.diff").read_text()
    added = max((x[1:] for x in patch.splitlines() if x.startswith("+") and x[1:2] != "+"), key=len)
    hidden = (good.tests / good.verify.tests[0]).read_text()
    faults = {
        "weak": ("tests/" + good.verify.tests[0], _without_asserts(hidden)),
        "leak": ("environment/workspace/docs/old.py", right.decode()),
        "told": ("instruction.md", f"Please write this line again:\n{added}\n    and nothing else {right.decode()}"),
        "bare": ("instruction.md", "\n"),
        "tests": ("environment/workspace/notes.txt", hidden),
        "oracle": ("solution/patch.diff", patch.replace("@@ -", "@@ -9", 1)),
    }
    copies = []
    for name, (file, content) in faults.items():
        root = Path(shutil.copytree(good.root, tmp_path / name))
        (root / "tests/twins.json").unlink(missing_ok=True)
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(content)
        (root / "task.toml").write_text((root / "task.toml").read_text().replace(good.id, name))
        copies.append(load_task(root))
    checked = {c.id: c for c in check_all(Auditor(), copies, workers=2)}
    said = {name: c.reason for name, c in checked.items()}
    assert "doing nothing passes" in said["weak"]
    assert "the answer to" in said["leak"] and "docs/old.py" in said["leak"]
    assert "line of the fix" in said["told"] and "the instruction is empty" in said["bare"]
    assert "hidden test" in said["tests"] and "notes.txt" in said["tests"]
    assert "no oracle" in said["oracle"]
    assert all(not load_task(tmp_path / name).is_audited for name in faults)
    assert sum(reasons_table(checked.values()).values()) == len(faults)


def _without_asserts(text: str) -> str:
    lines = text.splitlines()
    weak = [
        x[: len(x) - len(x.lstrip())] + "pass" if x.lstrip().startswith(("assert ", "self.assert")) else x
        for x in lines
    ]
    return "\n".join(weak).replace("with self.assertRaises(ValueError):", "if False:") + "\n"


def test_a_valid_card_is_not_made_again(mutated: Report, tmp_path: Path) -> None:
    root = Path(shutil.copytree(mutated.out / mutated.kept[1], tmp_path / "copy"))
    before = (root / "task.toml").read_bytes()
    (result,) = check_all(Auditor(), [load_task(root)], workers=1)
    assert result.cached and not result.reason and (root / "task.toml").read_bytes() == before


@pytest.mark.parametrize("spec", ["/nowhere/at/all", "pypi:not a name"])
def test_sources_that_are_none(spec: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError):
        build_functions("mutate", spec, tmp_path, 1)
