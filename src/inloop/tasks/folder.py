"""Harbor task folder <-> `Task`: our keys in `[metadata.inloop]`, valid Harbor 1.4 names everywhere else."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomlkit
import tomlkit.items

from inloop.errors import TaskError
from inloop.files import write_atomic
from inloop.tasks import tables
from inloop.tasks.task import Card, Limits, Provenance, Task, VerifySpec

SCHEMA = "1.4"
OURS = "metadata.inloop"
KEYS = (
    "id", "split", "difficulty", "setup", "test_command", "limits", "verify", "provenance", "card", "meta",
)  # fmt: skip
ELSEWHERE = {"limits": ("wall_seconds", "memory_mb"), "verify": ("wall_seconds",)}
"""Fields that Harbor names: `[agent] timeout_sec`, `[environment] memory_mb`, `[verifier] timeout_sec`."""
TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NOT_OURS = "no [metadata.inloop]: a foreign Harbor task, judged by its own tests/test.sh inside its docker image"

Files = Mapping[str, bytes | str]
"""Relative POSIX path -> content."""


def load_task(folder: Path | str) -> Task:
    """Read a task folder. Raises TaskError that names the file, the line and the fix."""
    root = Path(folder)
    if not (root / "task.toml").is_file():
        raise TaskError(f"{root}: no task.toml in it", fix="give a task folder; `inloop tasks list DIR` lists them")
    source, data = tables.parse(root / "task.toml")
    instruction = _instruction(root)
    ours = _table(data, source, "metadata", "inloop")
    if ours is None:
        return _foreign(root, instruction, source, data)
    for key in ours:
        if key not in KEYS:
            raise tables.unknown_key(key, KEYS, source, OURS)
    if not (root / "environment" / "workspace").is_dir():
        raise TaskError(f"{root}/environment/workspace: not a folder", fix="restore it, or build the task again")
    return _ours(root, instruction, source, data, ours)


def _instruction(root: Path) -> str:
    try:
        return (root / "instruction.md").read_text("utf-8")
    except OSError as error:
        raise TaskError(f"{root}/instruction.md: {error.strerror}", fix="write what is to be done there") from None
    except UnicodeDecodeError as error:
        raise TaskError(f"{root}/instruction.md: not UTF-8 ({error.reason})", fix="save it as UTF-8") from None


def _table(data: Any, source: tables.Source, *path: str) -> dict[str, Any] | None:
    for depth, key in enumerate(path):
        if key not in data:
            return None
        data = data[key]
        if not isinstance(data, dict):
            name = ".".join(path[: depth + 1])
            raise TaskError(f"{source.at('.'.join(path[:depth]), key)}: {name} must be a table")
    return dict(data)


def _ours(root: Path, instruction: str, source: tables.Source, data: dict[str, Any], ours: dict[str, Any]) -> Task:
    def get(key: str, hint: Any, default: Any) -> Any:
        return tables.value(hint, ours[key], source, OURS, key) if key in ours else default

    card = ours.get("card")
    return Task(
        id=_valid_id(get("id", str, root.name), source),
        root=root,
        instruction=instruction,
        limits=_limits(source, data, ours.get("limits", {})),
        verify=_verify(source, data, ours.get("verify", {})),
        setup=get("setup", tuple[str, ...], ()),
        test_command=get("test_command", str, Task.__dataclass_fields__["test_command"].default),
        provenance=tables.read(
            Provenance, {"builder": "hand"} | ours.get("provenance", {}), source, f"{OURS}.provenance"
        ),
        split=get("split", str, ""),
        difficulty=get("difficulty", float, None),
        card=None if card is None else tables.read(Card, card, source, f"{OURS}.card"),
        network="public" if _network(source, data) else "none",
        image=_image(source, data),
        meta=get("meta", dict[str, Any], {}),
    )


def _valid_id(name: str, source: tables.Source) -> str:
    if not TASK_ID.fullmatch(name):
        raise TaskError(f"{source.at(OURS, 'id')}: '{name}' can't be a task id", fix="letters, digits, '.', '_', '-'")
    return name


def _harbor(source: tables.Source, data: dict[str, Any], table: str, key: str, hint: Any, default: Any) -> Any:
    found = _table(data, source, *table.split(".")) or {}
    return tables.value(hint, found[key], source, table, key) if key in found else default


def _limits(source: tables.Source, data: dict[str, Any], table: dict[str, Any]) -> Limits:
    limits = tables.read(Limits, table, source, f"{OURS}.limits")
    return replace(
        limits,
        wall_seconds=_harbor(source, data, "agent", "timeout_sec", float, limits.wall_seconds),
        memory_mb=_harbor(source, data, "environment", "memory_mb", int, limits.memory_mb),
    )


def _verify(source: tables.Source, data: dict[str, Any], table: dict[str, Any]) -> VerifySpec:
    spec = tables.read(VerifySpec, table, source, f"{OURS}.verify")
    return replace(spec, wall_seconds=_harbor(source, data, "verifier", "timeout_sec", float, spec.wall_seconds))


def _network(source: tables.Source, data: dict[str, Any]) -> bool:
    mode = _harbor(source, data, "environment", "network_mode", str, "public")
    return bool(mode != "no-network")


def _image(source: tables.Source, data: dict[str, Any]) -> str:
    return str(_harbor(source, data, "environment", "docker_image", str, ""))


def _foreign(root: Path, instruction: str, source: tables.Source, data: dict[str, Any]) -> Task:
    """A folder that another tool wrote: it needs its image, and its own script judges it ('command', weaker)."""
    image = _image(source, data) or f"dockerfile:{root.name}/environment"
    verify = VerifySpec(mode="command", command=("bash", "/tests/test.sh"), allow=("**",), twins=False)
    verify = replace(verify, wall_seconds=_harbor(source, data, "verifier", "timeout_sec", float, 600.0))
    why = NOT_OURS if "steps" not in data else f"{NOT_OURS}; multi-step ([[steps]]) tasks can't be run here"
    return Task(
        id=root.resolve().name,
        root=root,
        instruction=instruction,
        limits=_limits(source, data, {}),
        verify=verify,
        provenance=Provenance(builder="harbor", repository=str(data.get("source") or ""), unit=root.resolve().name),
        network="public" if _network(source, data) else "none",
        image=image,
        meta={"needs": why},
    )


def write_task(task: Task, *, workspace: Files, tests: Files, solution: Files, dockerfile: str | None = None) -> Task:
    """Write a whole folder at `task.root`, or nothing: made beside it and renamed. Returns the task as read back.

    `solution` holds `patch.diff` (a reverse patch against the workspace); `solve.sh` and `test.sh` are added when
    they are not given."""
    if not TASK_ID.fullmatch(task.id):
        raise TaskError(f"'{task.id}' can't be a task id", fix="letters, digits, '.', '_', '-'")
    task.root.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=task.root.parent, prefix=f".{task.id[:40]}."))
    try:
        staging.chmod(0o755)
        write_files(staging / "environment" / "workspace", workspace)
        write_files(staging / "tests", {"test.sh": test_script(task)} | dict(tests))
        write_files(staging / "solution", {"solve.sh": SOLVE} | dict(solution))
        write_files(staging, {"instruction.md": task.instruction, "task.toml": to_toml(task)})
        write_files(staging / "environment", {"Dockerfile": dockerfile or DOCKERFILE.format(python=_python())})
        if task.root.exists():
            shutil.rmtree(task.root)
        staging.rename(task.root)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return load_task(task.root)


def write_files(folder: Path, files: Files) -> None:
    """Write each file under `folder`; scripts are executable. Raises TaskError on a path that leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise TaskError(f"'{name}' leaves the task folder", fix="use relative paths without '..'")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)


def save_metadata(task: Task) -> None:
    """Rewrite `[metadata.inloop]` (card, split, difficulty, ...) and leave every other table as it is."""
    path = task.root / "task.toml"
    source, _ = tables.parse(path)
    document = tomlkit.parse(source.text)
    metadata = document.setdefault("metadata", tomlkit.table(is_super_table=True))
    metadata.pop("inloop", None)
    metadata["inloop"] = _our_table(task)
    write_atomic(path, tomlkit.dumps(document))


def to_toml(task: Task) -> str:
    """The text of `task.toml`: Harbor's tables, then ours."""
    document = tomlkit.document()
    document["schema_version"] = SCHEMA
    document["artifacts"] = ["/workspace"]
    document["task"] = {"name": f"inloop/{task.id}", "keywords": [k for k in (task.provenance.kind,) if k]}
    environment: dict[str, Any] = {
        "workdir": "/workspace",
        "network_mode": "public" if task.network == "public" else "no-network",
        "memory_mb": task.limits.memory_mb,
    }
    document["environment"] = environment | ({"docker_image": task.image} if task.image else {})
    document["agent"] = {"timeout_sec": task.limits.wall_seconds}
    document["verifier"] = {"timeout_sec": task.verify.wall_seconds, "environment_mode": "separate"}
    document["metadata"] = tomlkit.table(is_super_table=True)
    document["metadata"]["inloop"] = _our_table(task)  # type: ignore[index]
    return tomlkit.dumps(document)


def _our_table(task: Task) -> tomlkit.items.Table:
    table = tomlkit.table()
    table["id"] = task.id
    if task.split:
        table["split"] = task.split
    if task.difficulty is not None:
        table["difficulty"] = task.difficulty
    if task.setup:
        table["setup"] = list(task.setup)
    table["test_command"] = task.test_command
    for name in ("limits", "verify", "provenance"):
        fields = tables.plain(getattr(task, name))
        if kept := {k: v for k, v in fields.items() if k not in ELSEWHERE.get(name, ())}:
            table[name] = _sub_table(kept)
    if task.card:
        table["card"] = _sub_table(tables.plain(task.card))
    if task.meta:
        table["meta"] = _sub_table(json.loads(json.dumps(task.meta)))
    return table


def _sub_table(fields: dict[str, Any]) -> tomlkit.items.Table:
    table = tomlkit.table()
    for key, item in fields.items():
        if isinstance(item, dict):
            inline = tomlkit.inline_table()
            inline.update({k: v for k, v in item.items() if v is not None})
            table[key] = inline
        elif isinstance(item, list) and len(str(item)) > 100:
            table[key] = tomlkit.array(json.dumps(item, ensure_ascii=False)).multiline(True)
        elif item is not None:
            table[key] = item
    return table


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


DOCKERFILE = """\
FROM python:{python}-slim
RUN apt-get update && apt-get install -y --no-install-recommends patch && rm -rf /var/lib/apt/lists/* \\
    && pip install --no-cache-dir pytest
COPY workspace /workspace
WORKDIR /workspace
"""

SOLVE = """\
#!/bin/bash
# The oracle: undoes what makes the tests fail.
set -e
cd "${1:-/workspace}"
patch -p1 < "$(dirname "$0")/patch.diff"
"""


def test_script(task: Task) -> str:
    """`tests/test.sh`, with which plain Harbor grades: weaker than ours, it trusts the workspace's process."""
    path = ":".join(("/tests", *(f"/workspace/{p}".removesuffix("/.") for p in task.verify.python_path)))
    tests = " ".join(f"/tests/{t}" for t in task.verify.tests)
    run = f"PYTHONPATH={path} python -m pytest -q -p no:cacheprovider --rootdir /tests {tests}"
    if task.verify.mode == "command":
        run = " ".join(json.dumps(word) for word in task.verify.command)
    return TEST_SH.format(run=run)


TEST_SH = """\
#!/bin/bash
# Grades the task under plain Harbor. Weaker than `inloop verify`: the tests share a process with what they judge.
mkdir -p /logs/verifier
cd /workspace
{run}
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""
