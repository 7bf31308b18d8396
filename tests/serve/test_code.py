"""The agent in a repository: nothing of it is touched until a person says yes, whatever the repository holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.tiny_task import BROKEN, FIX

from inloop.errors import DataError
from inloop.harness.config import HarnessConfig
from inloop.rollout.engines import EngineConfig
from inloop.sandbox.base import Diff
from inloop.serve.code.agent import Code, CodeSettings, Outcome, Watcher
from inloop.serve.code.apply import apply
from inloop.serve.code.session import load_session
from inloop.trace.store import TrajectoryStore

pytestmark = [pytest.mark.xdist_group("serve"), pytest.mark.filterwarnings("ignore::FutureWarning")]

TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
SOLVE = ["```read calc.py```", FIX, "```test```", "```submit```"]
Snapshot = dict[str, Any]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A real one, with a git folder whose hooks and settings would tell if git were run."""
    root = tmp_path / "repository"
    root.mkdir()
    (root / "calc.py").write_text(BROKEN)
    (root / "test_calc.py").write_text(TEST)
    if subprocess.run(["git", "init", "-q", str(root)], capture_output=True).returncode == 0:
        spy = tmp_path / "git-ran"
        for hook in ("post-checkout", "pre-commit", "post-index-change"):
            (root / f".git/hooks/{hook}").write_text(f"#!/bin/sh\ntouch {spy}\n")
            (root / f".git/hooks/{hook}").chmod(0o755)
        with (root / ".git/config").open("a") as config:
            config.write(f"[core]\n\tfsmonitor = touch {spy}\n\tsshCommand = touch {spy}\n")
    return root


def snapshot(root: Path) -> Snapshot:
    return {
        str(p.relative_to(root)): (p.lstat().st_mode, p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else None)
        for p in sorted(root.rglob("*"))
    }


@pytest.fixture
def code(tmp_path: Path) -> Callable[..., Code]:
    """An agent that says `replies`."""

    def make(replies: list[str], watcher: Watcher | None = None, **kw: Any) -> Code:
        script = tmp_path / f"script-{len(list(tmp_path.glob('script-*')))}.json"
        script.write_text(json.dumps(replies))
        settings = CodeSettings(
            model=str(script), engine=EngineConfig(kind="scripted"), harness=HarnessConfig(max_turns=8),
            data=tmp_path / "data", **kw,
        )  # fmt: skip
        return Code(settings, watcher or Watcher())

    return make


def worked(code: Code, repository: Path) -> Outcome:
    return code.work(code.begin(repository, "add is wrong. Mend it."))


def test_a_bug_is_fixed_and_nothing_is_touched_until_accepted(
    code: Callable[..., Code], repository: Path, tmp_path: Path
) -> None:
    before = snapshot(repository)
    agent = code(SOLVE)
    outcome = worked(agent, repository)
    assert snapshot(repository) == before
    assert outcome.stop.value == "submitted" and outcome.tests and outcome.tests.ok
    assert "+    return a + b" in outcome.patch and list(outcome.diff.changed) == ["calc.py"]
    assert agent.accept(outcome) == ["calc.py"]
    after = snapshot(repository)
    assert {k for k in {*before, *after} if before.get(k, (0, 0, 0))[2] != after.get(k, (0, 0, 0))[2]} == {"calc.py"}
    assert (repository / "calc.py").read_text() == BROKEN.replace("-", "+")
    ledger = agent.store(outcome, accepted=True)
    [t] = list(TrajectoryStore(ledger))
    assert t.meta["accepted"] is True and t.meta["visible_tests_passed"] is True and t.diff and len(t.nodes) > 6
    assert t.reward is None and not outcome.session.folder.exists() and not (tmp_path / "git-ran").exists()


class Unplugged(Watcher):
    """Ctrl-C in the middle of a turn."""

    def __init__(self, after: int) -> None:
        self.left = after

    def results(self, results: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def test_an_interrupted_session_goes_on_at_its_last_finished_turn(
    code: Callable[..., Code], repository: Path, tmp_path: Path
) -> None:
    writes = "```write notes.txt\nfirst\n```"
    script = ["```read calc.py```", writes, FIX, "```bash\ncat notes.txt calc.py\n```", "```submit```"]
    agent = code(script, Unplugged(2))
    session = agent.begin(repository, "add is wrong. Mend it.")
    with pytest.raises(KeyboardInterrupt):
        agent.work(session)
    kept = load_session(tmp_path / "data", session.id)
    assert kept.work.changed == {"notes.txt": b"first\n"} and kept.trajectory.counts["turns"] == 2
    again = Code(agent.settings, Watcher())
    outcome = again.work(again.resume(session.id))
    texts = [n.message.text for n in outcome.session.trajectory.nodes]
    assert outcome.stop.value == "submitted" and set(outcome.diff.changed) == {"calc.py", "notes.txt"}
    assert [n.id for n in outcome.session.trajectory.nodes] == [f"n{i}" for i in range(len(texts))]
    assert sum("```read" in t for t in texts[2:]) == 1 and any("first\ndef add" in t for t in texts)
    assert outcome.session.trajectory.counts["turns"] == 5
    with pytest.raises(DataError, match="no session 'nope'"):
        again.resume("nope")


@pytest.mark.slow
def test_token_ids_stay_exact_over_an_interruption(checkpoint: Path, repository: Path, tmp_path: Path) -> None:
    """The trained checkpoint itself, stopped and resumed: each prompt goes on from the ids before it."""
    settings = CodeSettings(
        model=str(checkpoint), engine=EngineConfig(dtype="float32", slots=2), data=tmp_path / "data", max_turns=4,
        test_command="",
    )  # fmt: skip
    agent = Code(settings, Unplugged(2))
    session = agent.begin(repository, "Mend it.")
    with pytest.raises(KeyboardInterrupt):
        agent.work(session)
    first = load_session(tmp_path / "data", session.id).trajectory
    again = Code(settings, Watcher())
    t = again.work(again.resume(session.id)).session.trajectory
    assert t.counts["turns"] == 4 and [n.token_ids for n in t.nodes[: len(first.nodes) - 1]] == [
        n.token_ids for n in first.nodes[:-1]
    ]
    sampled = [n for n in t.nodes if n.sampled]
    assert len(sampled) == 4 and all(n.token_ids and n.logprobs for n in sampled)
    assert t.stop is not None and t.stop.value in ("turn_limit", "agent_error")


def test_a_repository_that_changed_meanwhile_is_left_alone(code: Callable[..., Code], repository: Path) -> None:
    for change in (
        lambda: (repository / "calc.py").write_text("mine\n"),
        lambda: (repository / "new.py").write_text("mine\n"),
        lambda: (repository / "test_calc.py").unlink(),
    ):
        agent = code(SOLVE)
        outcome = worked(agent, repository)
        change()
        before = snapshot(repository)
        with pytest.raises(DataError, match="has changed since"):
            agent.accept(outcome)
        assert snapshot(repository) == before
        (repository / "calc.py").write_text(BROKEN)
        (repository / "test_calc.py").write_text(TEST)


def test_a_hostile_repository_harms_nothing(code: Callable[..., Code], repository: Path, tmp_path: Path) -> None:
    """Tests that attack, links out, secrets, devices, odd names; and an agent that helps them."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("untouched")
    (repository / "out").symlink_to(outside)
    (repository / "precious").symlink_to(outside / "precious")
    (repository / ".env").write_text("API_KEY=verysecret\n")
    os.mkfifo(repository / "pipe")
    attack = (
        "import os, pathlib, socket\n"
        f"for target in ({str(outside)!r}, {str(repository)!r}, '/etc', '/root', '/workspace/out'):\n"
        "    try:\n        (pathlib.Path(target) / 'owned').write_text('x')\n"
        "    except OSError:\n        pass\n"
        "def test_network():\n"
        "    try:\n        socket.create_connection(('127.0.0.1', 22), 1)\n"
        "    except OSError:\n        return\n"
        "    raise AssertionError('there is a way out')\n"
    )
    (repository / "conftest.py").write_text(attack)
    before, left = snapshot(repository), []

    class Listening(Watcher):
        def copied(self, files: int, left_out: Any) -> None:
            left.append(left_out)

    agent = code(
        ["```bash\ncat .env; ls -la out; python -m pytest -q; git init -q . && echo x > .git/hooks/pre-commit; "
         "ln -s /etc/passwd link; mkdir out; echo y > out/precious\n```", FIX, "```submit```"], Listening(),
    )  # fmt: skip
    outcome = worked(agent, repository)
    assert snapshot(repository) == before and (outside / "precious").read_text() == "untouched"
    assert list(outside.iterdir()) == [outside / "precious"] and not Path("/etc/owned").exists()
    assert left[0]["symbolic link"] == 2 and left[0]["secret"] == 1 and left[0]["device, socket or FIFO"] == 1
    assert "verysecret" not in json.dumps(outcome.session.trajectory.to_dict())
    assert {path for path, _ in outcome.diff.rejected} >= {"link"} and not any(
        p.startswith(".git") for p in outcome.diff.changed
    )
    with pytest.raises(DataError, match="is a link"):  # out/precious would be written through it
        agent.accept(outcome)
    assert snapshot(repository) == before and not (tmp_path / "git-ran").exists()


BAD_PATHS = ["../x", "/etc/x", ".git/hooks/pre-commit", "a/.GIT/config", "a/../../x", ""]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_paths_that_no_diff_may_hold(repository: Path, tmp_path: Path, path: str) -> None:
    pristine = tmp_path / "pristine"
    pristine.mkdir()
    for name in ("calc.py", "test_calc.py"):
        (pristine / name).write_bytes((repository / name).read_bytes())
    before = snapshot(repository)
    with pytest.raises(DataError, match="no path"):
        apply(repository, pristine, Diff(changed={"calc.py": b"new", path: b"x"}))
    assert snapshot(repository) == before
    (repository / ".env").write_text("mine")
    with pytest.raises(DataError, match="never saw"):
        apply(repository, pristine, Diff(changed={".env": b"x"}))


def test_exactly_what_the_diff_says(repository: Path, tmp_path: Path) -> None:
    from inloop.serve.code.copy import copy_repository

    pristine = tmp_path / "pristine"
    (repository / "run.sh").write_text("#!/bin/sh\n")
    (repository / "run.sh").chmod(0o755)
    copy_repository(repository, pristine)
    diff = Diff(changed={"run.sh": b"#!/bin/sh\ntrue\n", "deep/er/new.py": b"x = 1\n"}, deleted=("calc.py",))
    assert apply(repository, pristine, diff) == ["run.sh", "deep/er/new.py", "calc.py"]
    assert (repository / "run.sh").stat().st_mode & 0o777 == 0o755 and not (repository / "calc.py").exists()
    assert (repository / "deep/er/new.py").read_text() == "x = 1\n"
    left = [p.name for p in repository.rglob(".*") if p.name != ".git" and ".git" not in p.parts]
    assert left == []


def inloop(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from inloop.cli.main import main; main()", "code", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=250, stdin=subprocess.DEVNULL)


def test_the_command(repository: Path, tmp_path: Path) -> None:
    script, harness = tmp_path / "script.json", tmp_path / "harness.toml"
    script.write_text(json.dumps([SOLVE[0] + "\x1b[31m", *SOLVE[1:]]))
    harness.write_text("max_turns = 8\n")
    engine = ["-m", str(script), "--engine", "scripted", "--data", str(tmp_path / "data"), "--harness", str(harness)]
    ran = inloop("mend add", *engine, cwd=repository)
    assert ran.returncode == 0, ran.stderr
    assert "read calc.py" in ran.stdout and "the tests pass" in ran.stdout and "\x1b[31m" not in ran.stdout
    name = ran.stdout.split("--resume ")[1].split()[0]
    assert (repository / "calc.py").read_text() == BROKEN
    ran = inloop("--resume", name, "--yes", "--json", *engine, cwd=tmp_path)
    told = json.loads(ran.stdout)
    assert ran.returncode == 0 and told["applied"] == ["calc.py"] and told["tests_passed"] is True
    assert (repository / "calc.py").read_text() != BROKEN and Path(told["trajectory"]).is_file()
    ran = inloop("--resume", name, *engine, cwd=tmp_path)
    assert ran.returncode == 2 and "no session" in ran.stderr and "Traceback" not in ran.stderr


def test_yes_does_not_apply_what_fails_its_tests(repository: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["```write calc.py\nnothing = 1\n```", "```submit```"]))
    ran = inloop(
        "mend add", "-m", str(script), "--engine", "scripted", "--data", str(tmp_path / "data"), "--yes", "--json",
        cwd=repository,
    )  # fmt: skip
    told = json.loads(ran.stdout)
    assert ran.returncode == 1 and told["applied"] == [] and told["tests_passed"] is False and told["kept"] is True
    assert (repository / "calc.py").read_text() == BROKEN
