"""A repository's suite in the sandbox: what passes, what it reaches, and clear words for what can't be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from inloop.build.functions import covered
from inloop.build.source import open_source, with_metadata
from inloop.build.suite import Baseline, Job, baseline, functions_reached, lab
from inloop.errors import TaskError


def test_what_passes_and_what_it_reaches(pocket_suite: Baseline) -> None:
    assert pocket_suite.dropped == {
        "tests/test_money.py::PurseTests::test_skipped": "test is skipped",
        "tests/test_money.py::PurseTests::test_fails_as_it_stands": "test fails as it stands",
    }
    assert "tests/test_text.py::test_shorten[10-the qui...]" in pocket_suite.tests
    names = [t.id for t in functions_reached(pocket_suite, "pocket/text.py", 14, 21)]
    assert names and all("test_spans" in n for n in names)


def test_only_reached_functions_are_candidates(pocket_suite: Baseline) -> None:
    from collections import Counter

    dropped: Counter[str] = Counter()
    units = {c.function.unit for c in covered(pocket_suite, dropped)}
    assert "pocket/text.py::shorten" in units and "pocket/money.py::Purse.pay" in units
    assert "pocket/text.py::untested" not in units
    assert dropped == {"function that no passing test reaches": 1}


def test_jobs_change_the_tree_for_themselves_only(pocket: Path) -> None:
    tree = with_metadata(open_source(str(pocket)))
    test = "tests/test_text.py::test_shorten_exact_fit"
    jobs = [
        Job("broken", (test,), {"pocket/text.py": b"def shorten(a, b, c=''): return 'no'\ndef spans(a, b): pass\n"}),
        Job("hangs", (test,), {"pocket/text.py": b"while True: pass\n"}, seconds=2),
        Job("dies", (test,), {"pocket/text.py": b"import os; os._exit(0)\n"}),
        Job("syntax", (test,), {"pocket/text.py": b"def (\n"}),
        Job("right", (test,), {}),
    ]
    with lab(tree, "test") as place:
        results = place.run(jobs)
    broken = results["broken"].tests[test]
    assert (broken.outcome, broken.exception) == ("failed", "AssertionError") and "no" in broken.message
    assert broken.line == 12 or broken.line > 0
    assert results["hangs"].exit == 124 and results["dies"].exit == 70
    assert not results["syntax"].tests and results["syntax"].errors
    assert results["right"].tests[test].outcome == "passed"


def refused(folder: Path) -> str:
    with pytest.raises(TaskError) as error:
        baseline(open_source(str(folder)), "test")
    return str(error.value)


def test_a_package_without_tests(pocket: Path) -> None:
    for path in pocket.rglob("test_*.py"):
        path.unlink()
    assert "pocket has no tests" in refused(pocket)


def test_a_package_whose_suite_fails(pocket: Path) -> None:
    (pocket / "pocket/__init__.py").write_text("import a_module_that_nobody_has\n")
    said = refused(pocket)
    assert "no test of its suite passes" in said and "a_module_that_nobody_has" in said


def test_a_package_that_does_not_parse(pocket: Path) -> None:
    (pocket / "pocket/text.py").write_text("def broken(:\n")
    assert "SyntaxError" in refused(pocket)


def test_a_package_that_needs_a_native_build(pocket: Path) -> None:
    (pocket / "pocket/__init__.py").write_text("from pocket._fast import go\n")
    (pocket / "pocket/_fast.pyx").write_text("def go(): pass\n")
    said = refused(pocket)
    assert "needs a native build" in said and "pocket/_fast.pyx" in said


def test_nothing_of_the_repository_runs_on_the_host(pocket: Path, tmp_path: Path) -> None:
    """The suite tries to leave a mark where the host would see it, and to read one that the host has."""
    mark = tmp_path / "mark"
    (tmp_path / "secret").write_text("host")
    (pocket / "conftest.py").write_text(
        f"from pathlib import Path\ntry:\n    Path({str(mark)!r}).write_text('x')\nexcept OSError:\n    pass\n"
    )
    (pocket / "tests/test_host.py").write_text(
        f"from pathlib import Path\ndef test_secret():\n    assert Path({str(tmp_path / 'secret')!r}).exists()\n"
    )
    found = baseline(open_source(str(pocket)), "test")
    assert found.dropped["tests/test_host.py::test_secret"] == "test fails as it stands"
    assert not mark.exists() and len(found.tests) > 10
