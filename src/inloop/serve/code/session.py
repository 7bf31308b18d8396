"""A session on disk: the pristine copy, and after every finished turn all that is needed to go on from it."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from inloop.errors import DataError
from inloop.files import write_atomic
from inloop.sandbox.base import Diff
from inloop.trace.trajectory import Trajectory

STATE = "state.json"
LEDGER = "trajectories.jsonl"


def data_folder() -> Path:
    """`$INLOOP_DATA`, or `~/.local/share/inloop`: never inside a repository."""
    given = os.environ.get("INLOOP_DATA")
    share = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    return (Path(given) if given else share / "inloop") / "code"


@dataclass(slots=True, kw_only=True)
class Session:
    """Files of its person alone: what is kept here is not yet redacted, and is removed when the session ends."""

    id: str
    folder: Path
    repository: Path
    instruction: str
    test_command: str
    model: str
    engine: dict[str, Any]
    """The engine's config, so that a session goes on with what it began with."""
    max_turns: int
    """0: the harness's."""
    harness: str
    """Hash: a session goes on under the harness that it began with."""
    trajectory: Trajectory
    work: Diff = field(default_factory=Diff)
    """Changes as of the last finished turn."""

    @property
    def task_root(self) -> Path:
        return self.folder / "task"

    @property
    def workspace(self) -> Path:
        return self.task_root / "environment" / "workspace"

    def save(self) -> None:
        held = {
            "id": self.id, "repository": str(self.repository), "instruction": self.instruction,
            "test_command": self.test_command, "model": self.model, "engine": self.engine,
            "max_turns": self.max_turns, "harness": self.harness,
            "trajectory": self.trajectory.to_dict(), "work": _work(self.work),
        }  # fmt: skip
        write_atomic(self.folder / STATE, json.dumps(held, ensure_ascii=False))
        (self.folder / STATE).chmod(0o600)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def new_session(root: Path, **kw: Any) -> Session:
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    folder = root / "sessions" / name
    folder.mkdir(parents=True, mode=0o700)
    return Session(id=name, folder=folder, trajectory=Trajectory(id=name), **kw)


def load_session(root: Path, name: str) -> Session:
    """Raises DataError for one that is not there, with those that are."""
    file = root / "sessions" / name / STATE
    if "/" in name or not file.is_file():
        known = [p.parent.name for p in sorted(root.glob(f"sessions/*/{STATE}"))]
        raise DataError(f"no session {name!r} to go on with", fix=f"there are: {', '.join(known) or 'none'}")
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        return Session(
            id=held["id"], folder=file.parent, repository=Path(held["repository"]), instruction=held["instruction"],
            test_command=held["test_command"], model=held["model"], engine=held["engine"],
            max_turns=held["max_turns"], harness=held["harness"],
            trajectory=Trajectory.from_dict(held["trajectory"]), work=_read_work(held["work"]),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: can't be read ({error!r})", fix="begin anew") from error


def _work(diff: Diff) -> dict[str, Any]:
    told = asdict(diff)
    return {**told, "changed": {p: base64.b64encode(data).decode() for p, data in diff.changed.items()}}


def _read_work(held: dict[str, Any]) -> Diff:
    return Diff(
        changed={p: base64.b64decode(data) for p, data in held["changed"].items()},
        deleted=tuple(held["deleted"]),
        rejected=tuple((path, why) for path, why in held["rejected"]),
    )
