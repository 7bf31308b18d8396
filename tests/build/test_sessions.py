"""Sessions become tasks where the sandbox proves them; the others are counted, and nothing of a secret is written."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from session_writer import Call, chat, claude, codex

from inloop.build.audit import Auditor
from inloop.build.draft import Drop
from inloop.build.git import Repository
from inloop.build.session_patch import apply_edits
from inloop.build.session_read import Session, read_session
from inloop.build.session_replay import guess_root
from inloop.build.session_steps import Step, is_test_run, looks_passed, only_tests, steps_of
from inloop.build.sessions import Sessions, SessionSource, build_sessions
from inloop.errors import TaskError
from inloop.tasks.taskset import Taskset
from inloop.trace.open import open_traces
from inloop.trace.redact.apply import Redactor
from inloop.types import Call as Said

Git = Callable[..., str]
HOME = "/home/quentin/pocket"
KEY = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
MAIL = "quentin.moreau@corp-private.io"
BUG = ("[share + 1] * rest + [share]", "[share] * rest + [share + 1]")
HALF = "def halve(x):\n    return x / 2\n"
HALF_TEST = (
    "from pocket.half import halve\n\n\ndef test_halve():\n    assert halve(4) == 2\n\n\n"
    "def test_halve_odd():\n    assert halve(3) == 1.5\n\n\ndef test_halve_zero():\n    assert halve(0) == 0\n"
)
RAN: Call = ("Bash", {"command": f"cd {HOME} && python -m pytest -q"}, "3 passed in 0.1s")


def call(name: str, **given: object) -> Said:
    return Said(id="c", name=name, arguments=dict(given), raw="")


@pytest.mark.parametrize(
    ("said", "kind", "path"),
    [
        (call("Edit", file_path="/w/a.py", old_string="x", new_string="y"), "edit", "/w/a.py"),
        (call("edit", filePath="a.py", oldString="x", newString="y", replaceAll=True), "edit", "a.py"),
        (call("edit", path="a.py", edits=[{"oldText": "x", "newText": "y"}]), "edit", "a.py"),
        (call("Write", file_path="a.py", content=""), "write", "a.py"),
        (call("str_replace_editor", command="create", path="a.py", file_text="x"), "write", "a.py"),
        (call("str_replace_editor", command="insert", path="a.py", insert_line=1, new_str="x"), "insert", "a.py"),
        (call("apply_patch", input="*** Begin Patch\n*** Delete File: a.py\n*** End Patch"), "patch", ""),
        (call("shell", command=["bash", "-lc", "ls"]), "run", ""),
        (call("exec_command", cmd="ls", workdir="/w"), "run", ""),
    ],
)
def test_a_call_is_told_by_its_arguments(said: Said, kind: str, path: str) -> None:
    [step] = steps_of(said)
    assert (step.kind, step.path) == (kind, path)


def test_calls_that_only_look_are_no_steps() -> None:
    looks = [call("Read", file_path="a.py"), call("str_replace_editor", command="view", path="a.py"), call("submit")]
    assert [steps_of(c) for c in looks] == [[], [], []]
    assert is_test_run(call("test")) and is_test_run(call("Bash", command="cd x && python -m pytest -q | tail -3"))
    assert not is_test_run(call("Bash", command="ls tests"))
    assert only_tests(call("Bash", command="cd x && python -m pytest -q 2>&1 | tail -3"))
    assert not only_tests(call("Bash", command="pytest -q; rm a.py")) and not only_tests(call("Bash", command="ls"))
    assert looks_passed("3 passed", is_error=False) and not looks_passed("1 failed, 2 passed", is_error=False)
    assert not looks_passed("<returncode>1</returncode>", is_error=False)


def test_patches_find_their_lines_or_say_no() -> None:
    files = {"a.py": "one\ntwo\nthree\n", "b.py": "x\n"}
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n one\n-two\n+2\n three\n*** Add File: c.py\n+new\n"
        "*** Update File: b.py\n*** Move to: d.py\n@@\n-x\n+y\n*** End Patch"
    )
    assert apply_edits(Step(kind="patch", text=patch), files.get) == {
        "a.py": "one\n2\nthree\n", "c.py": "new\n", "b.py": None, "d.py": "y\n"
    }  # fmt: skip
    wrong = "*** Begin Patch\n*** Update File: a.py\n@@\n-nine\n+9\n*** End Patch"
    with pytest.raises(ValueError, match="lines"):
        apply_edits(Step(kind="patch", text=wrong), files.get)
    with pytest.raises(ValueError, match="more than once"):
        apply_edits(Step(kind="edit", path="a.py", old="e", text="E"), files.get)


def test_the_words_are_the_persons_own(tmp_path: Path) -> None:
    asked = [
        "Add halve to the package.<system-reminder>Be brief.</system-reminder>",
        "yes",
        "It has to work for odd numbers as well.",
        "Thanks, that is all for today.",
    ]
    calls: list[Call] = [
        ("Write", {"file_path": f"{HOME}/pocket/half.py", "content": "def halve(x):\n    return x // 2\n"}, "ok"),
        ("Read", {"file_path": f"{HOME}/pocket/half.py"}, "..."),
        ("Write", {"file_path": f"{HOME}/pocket/half.py", "content": HALF}, "ok"),
        ("Task", {"prompt": "look"}, "fine"),
    ]
    file = claude(tmp_path / "s.jsonl", asked, [*calls[:3], RAN], cwd=HOME, began=1e9)
    session = read_session(next(iter(open_traces(file)[0])))
    assert not isinstance(session, str)
    assert session.words.startswith("Add halve to the package.\n\nIt has to work for odd numbers as well.")
    assert "brief" not in session.words and "yes" not in session.words.split()


@pytest.fixture
def repo(pocket: Path, git: Git) -> Path:
    """The package with a bug, and with things that no task may hold."""
    money = pocket / "pocket/money.py"
    money.write_text(money.read_text().replace(*BUG))
    (pocket / "notes.txt").write_text(f"ask {MAIL}, the key is {KEY}\n")
    git(pocket, "init", "-q")
    git(pocket, "add", "-A"), git(pocket, "commit", "-qm", "start")
    return pocket


def on_disk(folder: Path) -> str:
    return "".join(p.read_text(errors="replace") for p in folder.rglob("*") if p.is_file())


def test_where_a_session_began(repo: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2030-01-01T00:00:00Z")
    (repo / "README.md").write_text("later\n")
    git(repo, "add", "-A"), git(repo, "commit", "-qm", "later")
    later, first = git(repo, "log", "--format=%H").split()
    session = Session(key="k", trajectory="t", words="do it", steps=(), began=2.2e9)
    with Repository.open(str(repo)) as repository:

        def began(given: str = "", **kw: object) -> str:
            work = Sessions(repository, given, None, tmp_path, 0, Auditor(False))
            return work._began(replace(session, **kw))  # type: ignore[arg-type]

        assert began() == later and began(began=1.85e9) == first and began(branch="gone") == later
        assert began(commit=first[:10]) == first and began(later, began=0.0) == later
        for kw, said in (
            ({"began": 1e9}, "neither"),
            ({"commit": "--all"}, "not in"),
            ({"commit": "f" * 40}, "not in"),
        ):
            with pytest.raises(Drop, match=said):
                began(**kw)


def test_the_root_is_told_by_the_paths_that_name_files() -> None:
    steps = [Step(kind="edit", path=p) for p in ("/testbed/pocket/money.py", "/testbed/new.py", "/tmp/x.py", "a.py")]
    assert guess_root(steps, {"pocket/money.py": b""}) == "/testbed" and guess_root(steps, {}) == ""


@pytest.mark.slow
def test_verified_sessions_become_audited_tasks(repo: Path, git: Git, tmp_path: Path) -> None:
    sessions, now = tmp_path / "sessions", time.time()
    start = git(repo, "rev-parse", "HEAD").strip()
    claude(
        sessions / "feature.jsonl",
        [f"Add a function halve to this package. Mail {MAIL} when it is done."],
        [
            ("Write", {"file_path": f"{HOME}/pocket/half.py", "content": HALF}, "ok"),
            ("Bash", {"command": f"cat > {HOME}/tests/test_half.py <<'EOF'\n{HALF_TEST}EOF"}, ""),
            ("Edit", {"file_path": f"{HOME}/pocket/half.py", "old_string": "nowhere", "new_string": ""}, "!no match"),
            ("Bash", {"command": f"export GITHUB_TOKEN={KEY}; git status; touch /tmp/escaped-{start[:8]}"}, ""),
            RAN,
        ],
        cwd=HOME,
        began=now + 60,
    )
    patch = (
        f"*** Begin Patch\n*** Update File: pocket/money.py\n@@\n-    return {BUG[1]} * (people - rest)\n"
        f"+    return {BUG[0]} * (people - rest)\n*** End Patch"
    )
    codex(
        sessions / "fix.jsonl",
        "The first people have to get the extra cents, now the last ones do.",
        [("apply_patch", {"input": patch}, "Success"), ("exec_command", {"cmd": "pytest -q"}, "12 passed")],
        cwd="/work/pocket",
        commit=start,
    )
    (repo / "pocket/money.py").write_text("later = 1\n")
    git(repo, "commit", "-qam", "later", "--date=2099-01-01T00:00:00")
    out = tmp_path / "out"
    source = SessionSource(repo=str(repo), redactor=Redactor(b"a salt for the tests of sessions"), commit=start)
    report = build_sessions([sessions], source, out, 10, workers=1)
    tasks = {t.instruction.split()[0]: t for t in Taskset.open(out).tasks()}
    assert set(tasks) == {"Add", "The"}, report.as_json()
    assert all(t.is_audited and t.provenance.commit == start for t in tasks.values())
    feature, fix = tasks["Add"], tasks["The"]
    assert "from pocket.half import halve" in feature.instruction and "assert halve(" in feature.instruction
    assert not (feature.workspace / "pocket/half.py").exists() and not (feature.workspace / ".git").exists()
    assert feature.verify.tests == ("test_half.py",) and len(feature.verify.expected) >= 2
    assert BUG[1] in (fix.workspace / "pocket/money.py").read_text()
    assert "test_money.py::SplitAgain::test_one" in fix.verify.expected  # others are inherited, and stay visible
    assert not Path(f"/tmp/escaped-{start[:8]}").exists()
    written = on_disk(out)
    assert "quentin" not in written and KEY not in written and "REDACTED_" in written
    again = build_sessions([sessions], source, out, 10, workers=1)
    assert again.fresh == 0 and len(again.kept) == 2


@pytest.mark.slow
def test_what_cant_be_verified_is_counted(repo: Path, git: Git, tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    ran: Call = ("bash", {"command": "pytest -q"}, "12 passed")
    edits: dict[str, list[Call]] = {
        "failed": [("bash", {"command": "pytest -q"}, "1 failed, 2 passed")],
        "untested": [("bash", {"command": "true"}, "")],
        "looked": [("read", {"path": "pocket/money.py"}, "..."), ("test", {}, "12 passed")],
        "nothing": [("bash", {"command": "ls"}, ""), ran],
        "misfit": [("edit", {"path": "pocket/money.py", "old": "not there", "new": "x"}, "ok"), ("test", {}, "passed")],
        "only tests": [("write", {"path": "tests/test_new.py", "content": "def test_x():\n    pass\n"}, "ok"), ran],
        "breaks": [
            ("write", {"path": "pocket/half.py", "content": HALF}, "ok"),
            ("write", {"path": "tests/test_half.py", "content": HALF_TEST}, "ok"),
            ("bash", {"command": "sed -i 's/return sum/return -sum/' pocket/money.py"}, ""),
            ran,
        ],
    }
    for name, calls in edits.items():
        chat(sessions / f"{name}.jsonl", f"Please do the {name} thing for me.", calls)
    codex(sessions / "lost.jsonl", "Do it in another repository.", [("x", {"cmd": "touch a && pytest"}, "1 passed")],
          cwd="/w", commit="0" * 40)  # fmt: skip
    source = SessionSource(repo=str(repo), commit="HEAD")
    report = build_sessions([sessions], source, tmp_path / "out", 10, workers=1)
    assert report.kept == [] and report.skipped == {
        "its last test run did not pass": 1, "it ran no tests": 1, "it changed nothing": 1
    }  # fmt: skip
    assert report.drops == {
        "it changed nothing in the repository": 1,
        "its edits do not apply to its start": 1,
        "no test fails where it began and passes where it ended": 1,
        "it broke tests that passed before": 1,
        "its commit is not in the repository": 1,
    }
    with pytest.raises(TaskError, match="no commit nowhere"):
        build_sessions([sessions], SessionSource(repo=str(repo), commit="nowhere"), tmp_path / "o", 1)
