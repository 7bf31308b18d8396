"""Task folders: what is written is read back, and Harbor's own names hold everywhere but in our table."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from inloop.errors import TaskError
from inloop.tasks.folder import load_task, save_metadata, write_task
from inloop.tasks.task import Card, Limits, Provenance, Task, VerifySpec

HARBOR_KEYS = {
    "": {"schema_version", "source", "artifacts", "steps", "multi_step_reward_strategy", "task", "metadata",
         "environment", "agent", "verifier", "solution"},
    "task": {"name", "version", "description", "authors", "keywords"},
    "environment": {"docker_image", "build_timeout_sec", "os", "cpus", "memory_mb", "storage_mb", "gpus", "gpu_types",
                    "tpu", "env", "workdir", "healthcheck", "mcp_servers", "skills_dir", "network_mode",
                    "allowed_hosts"},
    "agent": {"timeout_sec", "user", "network_mode", "allowed_hosts"},
    "verifier": {"timeout_sec", "env", "user", "environment_mode", "environment", "collect", "network_mode",
                 "allowed_hosts"},
    "solution": {"env"},
}  # fmt: skip
"""Every key of Harbor 1.4 (harbor 0.26, `models/task/config.py`)."""


def make(root: Path, **changes: object) -> Task:
    task = Task(
        id="calc-1",
        root=root / "calc-1",
        instruction="`add(1, 2)` gives 4; it should give 3.\n",
        limits=Limits(wall_seconds=90.0, memory_mb=256),
        verify=VerifySpec(tests=("test_calc.py",), expected=("test_calc.py::test_add",), wall_seconds=40),
        provenance=Provenance(builder="mutate", repository="calc", unit="calc.py::add", kind="operator", seed=3),
        split="train",
        difficulty=0.25,
        meta={"note": "ünï", "numbers": [1, 2]},
    )
    return write_task(
        replace(task, **changes),  # type: ignore[arg-type]
        workspace={"calc.py": "def add(a, b):\n    return a + b + 1\n", "data/raw.bin": b"\0\xff"},
        tests={"test_calc.py": "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"},
        solution={"patch.diff": "--- a/calc.py\n"},
    )


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    task = make(tmp_path)
    again = load_task(tmp_path / "calc-1")
    assert again == task
    assert (again.split, again.difficulty, again.limits.wall_seconds) == ("train", 0.25, 90.0)
    assert again.verify.expected == ("test_calc.py::test_add",) and again.verify.wall_seconds == 40.0
    assert (again.workspace / "data/raw.bin").read_bytes() == b"\0\xff"
    assert (again.tests / "test.sh").stat().st_mode & 0o111 and (again.solution / "solve.sh").stat().st_mode & 0o111
    assert again.content_hash() == task.content_hash()


def test_every_key_is_one_that_harbor_knows(tmp_path: Path) -> None:
    make(tmp_path, image="ghcr.io/some/image:1", network="public")
    data = tomllib.loads((tmp_path / "calc-1/task.toml").read_text())
    assert set(data) <= HARBOR_KEYS[""]
    for table in ("task", "environment", "agent", "verifier"):
        assert set(data[table]) <= HARBOR_KEYS[table], table
    assert data["schema_version"] == "1.4" and data["verifier"]["environment_mode"] == "separate"
    assert data["artifacts"] == ["/workspace"], "the separate verifier judges the agent's workspace"
    assert set(data["metadata"]) == {"inloop"}


def test_the_card_is_kept_and_bound_to_the_content(tmp_path: Path) -> None:
    task = make(tmp_path)
    (task.root / "task.toml").write_text((task.root / "task.toml").read_text().replace("[task]", "# mine\n[task]"))
    card = Card(content=task.content_hash(), ok=True, checks={"oracle": True}, seconds=1.5)
    save_metadata(replace(task, card=card, split="test"))
    again = load_task(task.root)
    assert again.card == card and again.is_audited and again.split == "test"
    assert "# mine" in (task.root / "task.toml").read_text()
    (task.workspace / "calc.py").write_text("def add(a, b):\n    return 3\n")
    assert not load_task(task.root).is_audited


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('split = "train"', 'splt = "train"', 'splt = "train"', "did you mean 'split'"),
        ("difficulty = 0.25", 'difficulty = "hard"', "difficulty", "a number, not a string"),
        ("timeout_sec = 90.0", "timeout_sec = true", "timeout_sec = true", "a number, not a boolean"),
        ('builder = "mutate"', "builder = 3", "builder = 3", "a string, not a whole number"),
        ("[agent]", "[agent", "[agent", "TOML"),
    ],
)
def test_a_mistake_names_the_file_and_the_line(tmp_path: Path, old: str, new: str, line: str, says: str) -> None:
    path = make(tmp_path).root / "task.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    number = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if text.startswith(line))
    with pytest.raises(TaskError) as error:
        load_task(path.parent)
    assert f"{path}:{number}:" in str(error.value) and says in str(error.value)


def test_missing_pieces_are_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"no task\.toml"):
        load_task(tmp_path / "nowhere")
    root = make(tmp_path).root
    (root / "instruction.md").unlink()
    with pytest.raises(TaskError, match=r"instruction\.md"):
        load_task(root)
    (root / "instruction.md").write_bytes(b"\xff\xfe")
    with pytest.raises(TaskError, match="not UTF-8"):
        load_task(root)


def test_a_bad_write_leaves_nothing(tmp_path: Path) -> None:
    task = Task(id="x", root=tmp_path / "x", instruction="do it")
    with pytest.raises(TaskError, match="leaves the task folder"):
        write_task(task, workspace={"../../evil.py": ""}, tests={}, solution={})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TaskError, match="can't be a task id"):
        write_task(replace(task, id="../x"), workspace={}, tests={}, solution={})


def test_a_foreign_harbor_folder_loads_and_says_what_it_needs(tmp_path: Path) -> None:
    root = tmp_path / "hello-world"
    for name, text in {
        "task.toml": 'schema_version = "1.4"\n[metadata]\nauthor = "someone"\n[verifier]\ntimeout_sec = 33\n'
        "[environment]\nmemory_mb = 2048\nbuild_timeout_sec = 5.0\n",
        "instruction.md": "Write hello.txt",
        "environment/Dockerfile": "FROM ubuntu\n",
        "tests/test.sh": "exit 0\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    task = load_task(root)
    assert (task.id, task.verify.mode, task.verify.command) == ("hello-world", "command", ("bash", "/tests/test.sh"))
    assert task.image and "docker" in task.meta["needs"] and task.network == "public"
    assert task.verify.wall_seconds == 33.0 and task.limits.memory_mb == 2048 and not task.verify.twins
