"""A served taskset of two tiny tasks, and what has to be gone after each test."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.tiny_task import write_task

pytest.importorskip("openenv", reason="the env extra")

from inloop.env.app import EnvSettings
from inloop.env.serve import EnvServer
from inloop.sandbox import lease
from inloop.tasks.taskset import Taskset

GRACE = 20.0
"""Seconds within which what has to happen does, on a busy machine."""
FIX = {"tool": "edit", "path": "calc.py", "old": "a - b", "new": "a + b"}


def until(true: Callable[[], Any], seconds: float = GRACE) -> Any:
    """What `true` gives as soon as that is something; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("env") / "tasks"
    for name in ("add", "add2", "held"):
        write_task(root, name)
    taskset = Taskset.scan(root)
    taskset.assign({"add": "train", "add2": "train", "held": "test"})
    return root


def held_leases(pid: int | None = None) -> list[str]:
    """Sandboxes of an environment server that a process holds, this one if none is named."""
    holder = lease.process_key(os.getpid() if pid is None else pid)
    return [one.id for one in lease.leases() if one.owner.startswith("env ") and one.process == holder]


def processes(name: str) -> list[int]:
    """Those whose command line begins with `name`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if (folder / "cmdline").read_bytes().startswith(name.encode()):
                found.append(int(folder.name))
    return found


@pytest.fixture
def serve(tasks: Path) -> Iterator[Callable[..., EnvServer]]:
    """Start servers; at the end no session and no sandbox of theirs is left."""
    servers: list[EnvServer] = []

    def start(*, ping_seconds: float = 20.0, **settings: Any) -> EnvServer:
        fields: dict[str, Any] = {"tasks": tasks, "port": 0, "max_sessions": 8, **settings}
        servers.append(EnvServer(EnvSettings(**fields), ping_seconds=ping_seconds).start())
        return servers[-1]

    yield start
    for server in servers:
        server.close()
    assert not [s for server in servers for s in server.sessions["sessions"]]
    assert not held_leases()


@pytest.fixture
def server(serve: Callable[..., EnvServer]) -> EnvServer:
    return serve()
