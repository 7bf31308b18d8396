"""Import as a person meets it: exactly once, copies not trained twice, every skip with its place, the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from inloop.cli.traces_ import app
from inloop.errors import DataError
from inloop.trace.importing import import_traces
from inloop.trace.read.paths import read
from inloop.trace.redact.apply import Redactor
from inloop.trace.store import TrajectoryStore, read_trajectories
from inloop.trace.trajectory import Trajectory

SAMPLES = Path(__file__).parents[1] / "data" / "traces"
CODEX = SAMPLES / "codex" / "sessions"


def ledger(folder: Path) -> list[Trajectory]:
    return list(read_trajectories(folder)[0])


def skips(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in (folder / "skipped.jsonl").read_text().splitlines()]


def test_all_samples_twice(tmp_path: Path) -> None:
    first = import_traces([SAMPLES], tmp_path, redactor=Redactor(b"salt" * 8))
    before = ledger(tmp_path)
    assert first.trajectories == len(before) > 40
    assert first.records == first.records_used + sum(first.metadata.values()) + sum(
        s["kind"] == "record" for s in skips(tmp_path)
    )
    second = import_traces([SAMPLES], tmp_path, redactor=Redactor(b"salt" * 8))
    assert second.trajectories == 0 and second.turns == 0
    assert ledger(tmp_path) == before
    assert all(s["reason"] and s["file"] for s in skips(tmp_path))


def test_a_resumed_copy_bears_no_loss_again(tmp_path: Path) -> None:
    """The fork's file repeats its parent's turns under new times: only its own turn is sampled."""
    summary = import_traces([CODEX], tmp_path, redactor=None)
    fork = next(t for t in ledger(tmp_path) if t.meta.get("forked_from"))
    assert [n.message.text for n in fork.nodes if n.sampled] == ["subtract() is fine."]
    assert summary.copied_turns == 8  # of the fork, and of the thread that was compacted later


def test_a_session_that_grew_adds_only_what_is_new(tmp_path: Path) -> None:
    source = tmp_path / "s.jsonl"
    rows = (SAMPLES / "claude_code/projects/-work-calc/11111111-1111-4111-8111-111111111111.jsonl").read_bytes()
    lines = rows.split(b"\n")
    source.write_bytes(b"\n".join(lines[:9]) + b"\n")
    first = import_traces([source], tmp_path / "out", redactor=None)
    source.write_bytes(rows)
    second = import_traces([source], tmp_path / "out", redactor=None)
    assert (first.turns, second.turns, second.copied_turns) == (1, 3, 1)


def test_later_episodes_train_their_own_turn_only(tmp_path: Path) -> None:
    summary = import_traces([SAMPLES / "datasets" / "openthoughts_episodes.jsonl"], tmp_path, redactor=None)
    assert [sum(n.sampled for n in t.nodes) for t in ledger(tmp_path)] == [1, 1, 1]
    assert (summary.trajectories, summary.copied_turns) == (3, 3)


def test_ledgers_merge_and_keep_their_ids(tmp_path: Path) -> None:
    import_traces([SAMPLES / "trl"], tmp_path / "a", redactor=None)
    (one,) = ledger(tmp_path / "a")
    other = Trajectory.from_dict({**one.to_dict(), "task_id": "another"})
    TrajectoryStore(tmp_path / "b").append(other)
    import_traces(
        [tmp_path / "a" / "trajectories.jsonl", tmp_path / "b" / "trajectories.jsonl"], tmp_path / "c", redactor=None
    )
    first, second = ledger(tmp_path / "c")
    assert first.id == one.id and second.id.startswith(f"{one.id}~")


def test_parquet_and_globs(tmp_path: Path) -> None:
    row = json.loads((SAMPLES / "trl" / "messages_tools.jsonl").read_text())
    other = json.loads(json.dumps(row).replace("pytest -q", "pytest -x").replace('"command"', '"cmd"'))
    for message in (*row["messages"], *other["messages"]):
        message.setdefault("tool_calls", None)
    for name, value in (("a", row), ("b", other)):
        pq.write_table(
            pa.Table.from_pylist([{"messages": value["messages"], "tools": json.dumps(value["tools"])}]),
            tmp_path / f"{name}.parquet",
        )
    table = pa.concat_tables([pq.read_table(tmp_path / f"{n}.parquet") for n in "ab"], promote_options="permissive")
    pq.write_table(table, tmp_path / "rows.parquet")
    found = list(read(tmp_path / "rows.parquet")[0])
    assert [t.counts["calls"] for t in found] == [4, 4]
    assert [sorted(c.arguments or {}) for t in found for c in t.nodes[2].message.calls] == [["command"]] * 2 + [
        ["cmd"]
    ] * 2
    assert len(list(read(str(tmp_path / "*.parquet"))[0])) == 4
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "rows.parquet").read_bytes()[:-40])
    torn, skipped = read(tmp_path / "torn.parquet")
    assert list(torn) == [] and "damaged parquet" in skipped[0].reason


def test_the_format_is_found_by_content_not_by_name(tmp_path: Path) -> None:
    for number, sample in enumerate(sorted(SAMPLES.rglob("*.*"))):
        if sample.suffix in (".jsonl", ".json", ".traj", ".eval", ".db", ".zst") and "storage" not in str(sample):
            shutil.copy(sample, tmp_path / f"{number}.weird")
    found, _ = read(tmp_path)
    formats = {t.meta["format"] for t in found}
    assert {
        "claude-code",
        "codex",
        "pi",
        "opencode",
        "inspect",
        "atif",
        "swe-agent",
        "mini-swe-agent",
        "hf-sts",
    } <= formats


def test_images_are_written_by_hash_only_when_asked(tmp_path: Path) -> None:
    sample = SAMPLES / "edge_cases" / "claude_base64_image.jsonl"
    import_traces([sample], tmp_path / "a", redactor=None)
    assert not (tmp_path / "a" / "images").exists()
    import_traces([sample], tmp_path / "b", redactor=None, images=True)
    (image,) = (tmp_path / "b" / "images").iterdir()
    assert image.suffix == ".png" and image.read_bytes()[:4] == b"\x89PNG"
    assert image.stem in (tmp_path / "b" / "trajectories.jsonl").read_text()
    assert "iVBOR" not in (tmp_path / "b" / "trajectories.jsonl").read_text()


def test_the_database_is_not_touched(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "opencode" / "opencode.db", tmp_path / "opencode.db")
    (tmp_path / "opencode.db").chmod(0o444)
    before = (tmp_path / "opencode.db").read_bytes()
    assert len(list(read(tmp_path / "opencode.db")[0])) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["opencode.db"]
    assert (tmp_path / "opencode.db").read_bytes() == before


def test_links_and_devices_are_counted(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.jsonl").symlink_to("/etc/passwd")
    import os

    os.mkfifo(tmp_path / "in" / "pipe.jsonl")
    found, skipped = read(tmp_path / "in")
    assert list(found) == []
    assert sorted(s.reason for s in skipped) == ["not a regular file", "not a regular file"]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "100"})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_the_commands_one_after_the_other(home: Path) -> None:
    out = home / "out"
    done = run("import", SAMPLES / "claude_code", SAMPLES / "codex", "--out", out, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["trajectories"] == 6
    shown = run("show", out, "--row", 2)
    assert shown.exit_code == 0 and "Find where add is tested" in shown.stdout and "context 3" in shown.stdout
    assert json.loads(run("stats", out, "--json").stdout)["format"] == {"codex": 4, "claude-code": 2}
    checked = run("check", out, "--json")
    assert checked.exit_code == 0 and json.loads(checked.stdout)["errors"] == 0
    exported = run("export", out, "--format", "atif", "--out", home / "atif", "--json")
    assert exported.exit_code == 0 and json.loads(exported.stdout)["files"] == len(list((home / "atif").glob("*.json")))
    redacted = run("redact", out, "--out", home / "red", "--json")
    assert redacted.exit_code == 0 and len(ledger(home / "red")) == len(ledger(out))
    assert run("show", SAMPLES / "pi", "--json").exit_code == 0


def test_check_fails_on_a_broken_ledger(home: Path) -> None:
    broken = ledger_of_one(home)
    broken.nodes[0].parent = "nowhere"
    TrajectoryStore(home / "broken").append(broken)
    done = run("check", home / "broken")
    assert done.exit_code == 1 and "parent" in done.stdout and "row 1" in done.stdout


def ledger_of_one(home: Path) -> Trajectory:
    import_traces([SAMPLES / "trl"], home / "one", redactor=None)
    return ledger(home / "one")[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "nowhere/*.jsonl", "--out", "{home}/out"], "names no file"),
        (["import", "{home}", "--out", "{home}/out.jsonl"], "looks like a file"),
        (["show", "{home}", "--id", "nope"], "no trajectory nope"),
        (["export", "{home}", "--format", "xml", "--out", "{home}/x"], "unknown format"),
        (["redact", "{home}/one", "--out", "{home}/one"], "the ledger itself"),
    ],
)
def test_mistakes_are_explained(home: Path, arguments: list[str], said: str) -> None:
    ledger_of_one(home)
    done = run(*(a.replace("{home}", str(home)) for a in arguments))
    assert isinstance(done.exception, DataError) and said in str(done.exception) and done.exception.fix
    assert {p.name for p in home.iterdir()} <= {"one", "state"}, "nothing is left behind"


SLOW = """
import sys, time
from pathlib import Path
from inloop.trace.importing import import_traces
import_traces([sys.argv[1]], Path(sys.argv[2]), redactor=None)
"""


def test_killed_in_the_middle_and_run_again(tmp_path: Path) -> None:
    row = json.loads((SAMPLES / "trl" / "messages_tools.jsonl").read_text())
    with (tmp_path / "big.jsonl").open("w") as file:
        for number in range(1200):
            row["messages"][1]["content"] = f"task {number}"
            file.write(json.dumps(row) + "\n")
    command = [sys.executable, "-c", SLOW, str(tmp_path / "big.jsonl"), str(tmp_path / "out")]
    first = subprocess.Popen(command)
    while first.poll() is None and not (tmp_path / "out" / "trajectories.jsonl").exists():
        time.sleep(0.005)
    first.kill()
    first.wait()
    subprocess.run(command, check=True)
    found = [t.nodes[1].message.text for t in ledger(tmp_path / "out")]
    assert sorted(found) == sorted(f"task {n}" for n in range(1200))
