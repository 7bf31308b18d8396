"""`inloop env init`: a taskset as an OpenEnv package that can be validated, built and pushed as it is."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import inloop
from inloop.env import package_files as files
from inloop.env.catalog import Catalog
from inloop.errors import InloopError, TaskError
from inloop.harness.config import TOOLS
from inloop.tasks.task import Task
from inloop.verify.oracle import oracle_diff

EXTRAS = ("env", "serve", "sandbox")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".git", ".lock")
MOST_EPISODE_SECONDS = 3600.0
"""OpenEnv takes no more."""


def init(folder: Path, tasks: Path, *, name: str = "inloop_env", no_auth: bool = False) -> list[Path]:
    """Write the package; returns its files but for the copies of tasks and of inloop. Raises InloopError for a folder
    that is not empty or a name that is no module's."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*_env", name):
        raise InloopError(f"--name {name}: no name of an environment", fix="small letters, ending in _env")
    if folder.exists() and any(folder.iterdir()):
        raise InloopError(f"{folder} is not empty", fix="name a new folder")
    catalog = Catalog(tasks)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(tasks, folder / "tasks", ignore=LEFT_OUT, dirs_exist_ok=True)
    shutil.copytree(Path(inloop.__file__).parent, folder / "vendor" / "inloop", ignore=LEFT_OUT)
    probe = _probe_task(catalog)
    for path, text in _texts(catalog, probe, name, no_auth).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).parts[0] not in HELD)


HELD = ("tasks", "vendor")


def _texts(catalog: Catalog, probe: Task, name: str, no_auth: bool) -> dict[str, str]:
    needs = dependencies()
    filled = {
        "NAME": name,
        "CLASS": "".join(part.title() for part in name.removesuffix("_env").split("_")),
        "DASHED": name.replace("_", "-"),
        "COUNT": str(sum(len(rows) for rows in catalog.splits.values())),
        "SPLIT": next(iter(catalog.splits)),
        "TASK": probe.id,
        "LISTED": "\n".join(f"    {json.dumps(n)}," for n in needs),
        "DEPENDENCIES": " ".join(f'"{n}"' for n in needs),
        "AUTH": "INLOOP_ENV_AUTH=none" if no_auth else "",
    }

    def fill(text: str) -> str:
        return re.sub(r"@([A-Z]+)@", lambda found: filled[found[1]], text)

    return {
        "__init__.py": fill(files.INIT),
        "models.py": fill(files.MODELS),
        "client.py": fill(files.CLIENT),
        "README.md": fill(files.README),
        "pyproject.toml": fill(files.PYPROJECT),
        "server/__init__.py": "",
        "server/app.py": fill(files.APP),
        "server/Dockerfile": fill(files.DOCKERFILE),
        "validation/runtime.json": json.dumps(plan(probe), indent=2) + "\n",
        "validation/solve.sh": fill(files.SOLVE),
        "openenv.yaml": _yaml(manifest(catalog, name)),
    }


def dependencies() -> list[str]:
    """What inloop itself needs to serve, from its own metadata."""
    found = []
    for line in requires("inloop") or []:
        need, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        if extra is None or extra[1] in EXTRAS:
            found.append(need.strip())
    return sorted(set(found))


def manifest(catalog: Catalog, name: str) -> dict[str, Any]:
    rows = [row for found in catalog.splits.values() for row in found]
    limits = [catalog.load(row.id) for row in rows[:50]]
    seconds = max(t.limits.wall_seconds + t.verify.wall_seconds for t in limits)
    content = hashlib.sha256("\n".join(sorted(str((r.id, (r.card or {}).get("content"))) for r in rows)).encode())
    return {
        "spec_version": 1,
        "name": name,
        "version": "0.1.0",
        "type": "space",
        "runtime": "fastapi",
        "app": "server.app:app",
        "port": 8000,
        "validation": {
            "reward": {"range": [0.0, 1.0], "oracle_tolerance": 0.0, "floor_margin": 1.0},
            "resources": {
                "cpu": 2.0,
                "memory_mb": 2048,
                "disk_mb": 2048,
                "episode_timeout_s": min(seconds, MOST_EPISODE_SECONDS),
            },
            "network": {"mode": "public"},
            "task_distribution": {"dataset_version": content.hexdigest()[:16]},
            "capabilities": {
                "verifier": {"kind": "reward_channel"},
                "oracle": {"form": "script", "location": "validation/solve.sh"},
                "set_state": False,
                "llm_judged": False,
                "rubric_tree": False,
                "task_api": True,
                "declared_tools": list(TOOLS),
                "declared_task_count": {split: len(found) for split, found in catalog.splits.items()},
            },
            "types": {"tags": ["swe"]},
            "execution": {
                "kind": "openenv_ws",
                "probe_path": "validation/runtime.json",
                "dockerfile": "server/Dockerfile",
                "context": ".",
                "agent_boundary": "api",
                "requires_credentials": False,
            },
        },
    }


def plan(task: Task) -> dict[str, Any]:
    """A probe that looks around, works, fails once, and hands the solution in."""
    solved = oracle_diff(task)
    writes = [{"tool": "write", "path": p, "content": data.decode()} for p, data in sorted(solved.changed.items())]
    first = sorted(solved.changed)[0]
    look = [
        {"tool": "bash", "command": "ls"},
        {"tool": "read", "path": first},
        {"tool": "read", "path": "no/such/file"},
    ]
    return {
        "plan_schema_version": "1",
        "reset": {"episode_id": "probe", "seed": 7, "options": {"task_id": task.id}},
        "actions": [*look, *writes, {"tool": "submit"}],
    }


def _probe_task(catalog: Catalog) -> Task:
    """The first task whose solution is text that needs no deletion. Raises TaskError when there is none."""
    for rows in catalog.splits.values():
        for row in rows:
            task = catalog.load(row.id)
            try:
                solved = oracle_diff(task)
                texts = [data.decode() for data in solved.changed.values()]
            except (TaskError, UnicodeDecodeError):
                continue
            if texts and not solved.deleted and sum(map(len, texts)) < 32_768:
                return task
    raise TaskError(f"{catalog.root}: no task has a solution that can be written", fix="add solution/patch.diff to one")


def _yaml(value: dict[str, Any]) -> str:
    import yaml  # type: ignore[import-untyped]

    text: str = yaml.safe_dump(value, sort_keys=False)
    return text
