"""The one protocol that every backend speaks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from inloop.tasks.task import Limits

LimitName = Literal["wall", "cpu", "memory", "processes", "file", "disk", "output", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What a backend gives on this machine; it is written into every trajectory and card."""

    backend: str
    """'bubblewrap', 'docker', 'unisolated-process'."""
    level: Literal["strong", "weak", "none"]
    """weak: namespaces hold but limits are rlimits only; none: the command runs as the caller."""
    limits: str
    """'cgroup-v2', 'cgroup-v1', 'rlimits', 'docker', 'none'."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    exit_code: int
    """The command's own; 128 + signal when it was killed; 124 when its deadline did it."""
    stdout: str
    stderr: str
    seconds: float
    limit: LimitName = ""
    """Which limit it met; '' if none."""
    clipped: bool = False
    """stdout or stderr was cut in the middle; the text says how much."""

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Changes to the workspace, taken by a collector that follows no link and runs nothing."""

    changed: dict[str, bytes] = field(default_factory=dict)
    """Workspace-relative POSIX path -> new content."""
    deleted: tuple[str, ...] = ()
    rejected: tuple[tuple[str, str], ...] = ()
    """(path, why): links, devices, odd names, over the limits."""

    @property
    def empty(self) -> bool:
        return not self.changed and not self.deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    workspace: Path
    """The pristine folder: read only, shared by all sandboxes of a task."""
    limits: Limits = field(default_factory=Limits)
    env: dict[str, str] = field(default_factory=dict)
    setup: tuple[str, ...] = ()
    owner: str = ""
    """Who holds the lease, for the person who lists it: a run folder, a task id."""
    workdir: str = "/workspace"
    mounts: tuple[tuple[Path, str], ...] = ()
    """Folders of the host that are visible as well, read only: (host path, path inside). Bubblewrap only."""


class Sandbox(Protocol):
    """One episode's place. Methods may be called from any thread, one at a time; `close` from any thread at any
    time, which ends a running command."""

    id: str
    isolation: Isolation
    workdir: str

    def run(self, command: str, *, timeout: float | None = None) -> CommandResult:
        """Run `command` in bash; directory and exported variables live on to the next one.

        `timeout` in seconds is capped by the limits. Raises SandboxFault when the sandbox itself is gone."""
        ...

    def read(self, path: str) -> bytes:
        """A regular file of the workspace. Raises FileNotFoundError, IsADirectoryError, ValueError (outside)."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a workspace file, folders included; the same errors."""
        ...

    def diff(self) -> Diff: ...

    def reset(self) -> None:
        """Back to the pristine workspace: processes, files, directory and variables."""
        ...

    def close(self) -> None:
        """End every process and give back all that the lease holds; safe to call twice."""
        ...


class Backend(Protocol):
    name: str

    def probe(self) -> Isolation:
        """What this machine gives. Raises SandboxFault with the fix when the backend can't run here."""
        ...

    def open(self, spec: SandboxSpec) -> Sandbox: ...
