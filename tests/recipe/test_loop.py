"""The continual loop: killed and gone on with, two rounds on sessions of a repository, and the gate's verdicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness.tiny_task import write_task
from session_writer import chat

from inloop.config import dump
from inloop.errors import ConfigError, DataError
from inloop.evaluate.results import Results
from inloop.evaluate.score import TaskScore, summarise
from inloop.files import append_json
from inloop.recipe.ledger import NAME as LEDGER
from inloop.recipe.loop import run_loop
from inloop.recipe.loop_config import LoopConfig, load_loop
from inloop.recipe.loop_round import RoundRun
from inloop.recipe.loop_state import CURRENT, State
from inloop.tasks.taskset import Taskset
from inloop.trace.store import TrajectoryStore
from inloop.train.sft import sft

WORDS = ("alpha", "beta", "gamma", "delta", "omega")
SECRET = "ghp_" + "kQ7wE2rT9yU4iO1pA6sD3fG8hJ5kL0zX2cV7"
TOML = """\
out = "{root}/loop"
model = "{model}"
min_sessions = 2
max_sessions = 3
held_out = {{ path = "{root}/held_out" }}
retention = {{ path = "{root}/retention" }}

[watch]
paths = ["{root}/sessions", "{root}/not there yet"]
quiet_seconds = 0.0
salt = "{root}/salt"

[tasks]
repo = "{root}/repo"
commit = "main"
workers = 1

[harness]
max_turns = 2
max_turn_tokens = 8
max_tokens = 16
guides = []
tools = ["read", "edit", "test", "submit"]

[data.select]
near_duplicates = 0.0

[sft]
max_steps = 2
held_out = 0.0
smoke = false
batch = 2
accumulate = 1
save_every = 1
lora = {{ rank = 2, alpha = 4.0, layers = 1 }}

[evaluate]
k = 1
engine = {{ slots = 4 }}
"""


def write_repo(folder: Path) -> Path:
    """A package of five functions, each with a bug that its tests notice."""
    for number, word in enumerate(WORDS, 2):
        for path, text in {
            f"lib/{word}.py": f"def {word}(x):\n    return x - {number}\n",
            f"tests/test_{word}.py": f"from lib.{word} import {word}\n\n\ndef test_one():\n    assert {word}(1) == "
            f"{1 + number}\n\n\ndef test_ten():\n    assert {word}(10) == {10 + number}\n",
            "lib/__init__.py": "",
        }.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    for args in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "start")):
        subprocess.run(["git", *identity, *args], cwd=folder, check=True)
    return folder


def session(folder: Path, word: str, *, passed: bool = True) -> Path:
    number = WORDS.index(word) + 2
    asked = f"The function {word} goes down where it should go up. Mend it, my token is {SECRET}."
    return chat(folder / f"{word}.jsonl", asked, [
        ("read", {"path": f"lib/{word}.py"}, f"def {word}(x):\n    return x - {number}\n"),
        ("edit", {"path": f"lib/{word}.py", "old": f"x - {number}", "new": f"x + {number}"}, "ok"),
        ("test", {}, "2 passed" if passed else "2 failed"),
    ])  # fmt: skip


def write_taskset(folder: Path, *names: str) -> Path:
    for name in names:
        write_task(folder, name)
    Taskset.scan(folder).save()
    return folder


@pytest.fixture
def place(tmp_path: Path, tiny_model: Path) -> Path:
    """A repository, two sets of fixed tasks, and the loop's config."""
    write_repo(tmp_path / "repo")
    write_taskset(tmp_path / "held_out", "add", "sum")
    write_taskset(tmp_path / "retention", "old")
    (tmp_path / "loop.toml").write_text(TOML.format(root=tmp_path, model=tiny_model))
    return tmp_path


def killed_when(config: Path, ripe: Path) -> None:
    """`inloop loop` as a process, killed as soon as `ripe` exists."""
    code = "from inloop.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "loop", str(config), "--once", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    until = time.monotonic() + 240
    while not ripe.exists():
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=30)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*lr_scheduler:UserWarning")
def test_two_rounds_killed_in_the_first(place: Path) -> None:
    sessions, root = place / "sessions", place / "loop"
    session(sessions, "alpha"), session(sessions, "beta"), session(sessions, "gamma", passed=False)
    killed_when(place / "loop.toml", root / "rounds/0001/sft/metrics.jsonl")
    config = load_loop(place / "loop.toml")
    done = run_loop(config, once=True)
    assert [r["number"] for r in done["rounds"]] == [1] and done["ended"] == 1 and done["waiting"] == 0
    session(sessions, "delta"), session(sessions, "omega")
    done = run_loop(config, rounds=2, once=True)
    assert done["ended"] == 1 and [r["number"] for r in done["rounds"]] == [1, 2]
    first, second = done["rounds"]
    assert first["facts"]["tasks"]["tasks"] == 2
    assert first["facts"]["tasks"]["unverified"] == {"its last test run did not pass": 1}
    assert first["facts"]["data"] | {"seconds": 0} == {
        "samples": 2, "replayed": 0, "drops": {"no verified reward": 1}, "seconds": 0
    }  # fmt: skip
    assert second["facts"]["tasks"]["tasks"] == 2 and second["facts"]["data"]["replayed"] == 2
    assert 2 <= second["facts"]["data"]["samples"] <= 4
    for one in (first, second):  # a model of 64 units learns nothing in two steps: refused, and it says why
        assert not one["promoted"] and any(why.startswith("not better") for why in one["reasons"])
        ledger = (root / f"rounds/{one['number']:04d}/stages.jsonl").read_text()
        stages = [json.loads(x)["stage"] for x in ledger.splitlines()]
        assert stages == ["tasks", "data", "sft", "evaluate", "gate"]  # each once, also after the kill
    assert done["current"] == "" and not (root / CURRENT).exists()
    assert (
        all(t.is_audited for t in Taskset.open(root / "tasks").tasks()) and len(Taskset.open(root / "tasks").rows) == 4
    )
    assert len(TrajectoryStore(root / "traces")) == 5
    written = "".join(p.read_text(errors="replace") for p in root.rglob("*") if p.is_file())
    assert SECRET not in written
    assert "REDACTED_githubtoken" in written
    assert run_loop(config, once=True)["ended"] == 0  # nothing new: nothing is done again
    goes_on_from(root / "rounds/0001/sft/checkpoints/last", root / "rounds/0002/data", config, place / "more")


def goes_on_from(checkpoint: Path, data: Path, config: LoopConfig, out: Path) -> None:
    """What a round does after a promotion: the adapter that is given is trained further, no fresh one."""
    from safetensors.torch import load_file

    sft(data, out, replace(config.sft, adapter=str(checkpoint), lr=1e-7))
    given, after = (load_file(f / "adapter_model.safetensors") for f in (checkpoint, out / "checkpoints/last"))
    assert given.keys() == after.keys() and all((given[k] - after[k]).abs().max() < 1e-5 for k in given)
    assert any(given[k].abs().max() > 1e-4 for k in given if "lora_B" in k)  # a fresh one has zeros there


def ready(place: Path, number: int, state: State, *, before: float, after: float, old: float = 1.0) -> RoundRun:
    """A round whose training and scoring are done: current and candidate pass these shares of the tasks."""
    config = replace(load_loop(place / "loop.toml"), out=place / "loop")
    run = RoundRun(config, state, state.begin((f"session {number}",)))
    for stage in ("tasks", "data", "sft", "evaluate"):
        append_json(run.folder / LEDGER, {"stage": stage})
    rates = {("current", "held_out"): before, ("candidate", "held_out"): after, ("candidate", "retention"): old}
    for kind, where in run._grounds():
        for name in ("current", "candidate"):
            settings, folder = run.scores(name, kind, where)
            if not folder.exists():
                results(settings.name, rates.get((name, kind), 1.0)).write(folder)
    return run


def points_to(root: Path) -> str:
    return str((root / CURRENT).readlink())


def results(name: str, share: float) -> Results:
    rows = []
    for i in range(20):
        good = i < share * 20
        rows.append(TaskScore(id=f"t{i}", scored=4, passed=4 * good, outcomes=[good] * 4, fractions=[float(good)] * 4))
    return Results(
        name=name, checkpoint={}, taskset={}, harness={}, sampling={}, summary=summarise(rows, [], k=1), rows=rows
    )


def test_the_gate_alone_moves_current(place: Path) -> None:
    root = place / "loop"
    state = State.read(root)
    first = ready(place, 1, state, before=0.05, after=0.5)
    assert first.current == ""
    first.run()
    assert state.rounds[0].promoted and points_to(root) == "rounds/0001/sft/checkpoints/last"
    second = ready(place, 2, state, before=0.5, after=1.0, old=0.5)
    assert second.current == str(root / "rounds/0001/sft/checkpoints/last")
    second.run()
    assert not state.rounds[1].promoted and "retention: worse" in state.rounds[1].reasons[0]
    third = ready(place, 3, state, before=0.5, after=0.5)
    third.run()
    assert state.rounds[2].reasons[0].startswith("not better")
    assert points_to(root) == "rounds/0001/sft/checkpoints/last"
    (root / CURRENT).unlink()  # killed between the ledger and the pointer, with a torn line at the end
    with (root / "loop.jsonl").open("a") as file:
        file.write('{"event": "open')
    again = State.read(root)
    assert points_to(root) == "rounds/0001/sft/checkpoints/last"
    assert [r.promoted for r in again.rounds] == [True, False, False] and again.open is None
    assert set(again.taken()) == {"session 1", "session 2", "session 3"}


def test_a_config_says_what_is_wrong_with_it(place: Path) -> None:
    config = load_loop(place / "loop.toml", ["seed=5"])
    assert config.sft.seed == config.evaluate.seed == 5 and config.sft.model == config.data.model == config.model
    assert config.data.decontaminate == (place / "held_out", place / "retention")
    again = place / "again.toml"
    again.write_text(dump(config))
    assert load_loop(again) == config
    wrong: dict[str, Any] = {"max_sessions=1": "no round", "sft.full=true": "adapters", "watch.path=1": "unknown key"}
    for text, said in wrong.items():
        with pytest.raises(ConfigError, match=said):
            load_loop(place / "loop.toml", [text])
    run_loop(config, once=True)
    with pytest.raises(DataError, match="another `out`"):
        run_loop(replace(config, model="another"), once=True)


def test_the_example_of_the_docs_resolves(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/loop.md").read_text().split("```toml\n")[1].split("```")[0]
    (tmp_path / "loop.toml").write_text(text)
    config = load_loop(tmp_path / "loop.toml")
    assert config.tasks.repo and config.older and config.retention and config.retention.filter.split == "test"


def test_sessions_that_still_go_on_are_left_for_later(place: Path) -> None:
    session(place / "sessions", "alpha"), session(place / "sessions", "beta")
    config: LoopConfig = load_loop(place / "loop.toml", ["watch.quiet_seconds=3600", "min_sessions=3"])
    assert run_loop(config, once=True)["waiting"] == 0
    old = time.time() - 4000
    os.utime(place / "sessions/alpha.jsonl", (old, old))
    assert run_loop(config, once=True) | {"out": ""} == {
        "out": "", "ended": 0, "current": "", "waiting": 1, "rounds": []
    }  # fmt: skip
