"""A task on disk is a Harbor task folder; our keys are in `[metadata.inloop]` of its `task.toml`.

task.toml  instruction.md
environment/Dockerfile  environment/workspace/   what the agent gets
tests/test.sh  tests/test_*.py                   hidden: never enters the agent's sandbox
solution/solve.sh  solution/patch.diff           the oracle: neither does this
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

VerifyMode = Literal["split", "forked", "command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one sandbox may use."""

    wall_seconds: float = 600.0
    """Of the whole episode."""
    command_seconds: float = 30.0
    """Of one command, unless the caller asks for less."""
    cpu_seconds: float = 300.0
    """CPU time of the whole episode."""
    memory_mb: int = 512
    processes: int = 64
    file_mb: int = 64
    """Largest single file."""
    disk_mb: int = 256
    """Upper layer, /tmp and /dev/shm, each."""
    output_bytes: int = 16_384
    """Kept of stdout and of stderr, head and tail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySpec:
    """What done means, judged where the agent never was."""

    mode: VerifyMode = "forked"
    modules: tuple[str, ...] = ()
    """split: importable modules of the workspace whose functions the hidden tests call, by value."""
    tests: tuple[str, ...] = ()
    """Hidden pytest files, relative to `tests/`."""
    expected: tuple[str, ...] = ()
    """Exactly the test ids ('test_x.py::test_name[param]') that must be reported and pass."""
    allow: tuple[str, ...] = ("**/*.py",)
    """Globs of the workspace paths whose changes are carried over; the rest is dropped and noted."""
    python_path: tuple[str, ...] = (".",)
    """Folders of the workspace that are importable."""
    command: tuple[str, ...] = ()
    """command: argv whose exit code 0 passes (other languages; weaker)."""
    cpu_seconds: float = 10.0
    """CPU budget of one test."""
    wall_seconds: float = 120.0
    """Of the whole verification."""
    twins: bool = True
    """Run mutated twins of the hidden tests; a twin that passes is a cheat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    builder: str
    repository: str = ""
    commit: str = ""
    licence: str = ""
    seed: int = 0
    unit: str = ""
    """The source unit that splits go by: 'path.py::qualified.name', a file, or a commit."""
    kind: str = ""
    """What was done to the unit: 'operator', 'misspelling', 'stub', 'commit', ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The audit: what was checked, on which content."""

    content: str
    """`Task.content_hash()` at the time."""
    ok: bool
    checks: dict[str, bool] = field(default_factory=dict)
    """oracle, noop_fails, skip_fails, repeats_agree, no_leak, instruction."""
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0
    memory_mb: float = 0.0
    isolation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: str
    root: Path
    instruction: str
    limits: Limits = field(default_factory=Limits)
    verify: VerifySpec = field(default_factory=VerifySpec)
    setup: tuple[str, ...] = ()
    """Shell commands run in the sandbox before the agent starts; trusted, from the task's author."""
    test_command: str = "python -m pytest -q"
    """What the `test` tool and the visible-tests sensor run in the workspace."""
    provenance: Provenance = field(default_factory=lambda: Provenance(builder="hand"))
    split: str = ""
    difficulty: float | None = None
    """Measured share of failed attempts, in [0, 1]; None if not measured."""
    card: Card | None = None
    network: Literal["none", "public"] = "none"
    image: str = ""
    """A docker image that the task needs; empty runs everywhere."""
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.root / "environment" / "workspace"

    @property
    def tests(self) -> Path:
        return self.root / "tests"

    @property
    def solution(self) -> Path:
        return self.root / "solution"

    def content_hash(self) -> str:
        """sha256 over everything that decides a reward: workspace, tests, solution, instruction, verify spec."""
        digest = hashlib.sha256(repr((self.instruction, self.verify, self.setup, self.limits)).encode())
        for path in sorted(p for p in self.root.rglob("*") if p.is_file() and p.name != "task.toml"):
            digest.update(f"\0{path.relative_to(self.root)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    @property
    def is_audited(self) -> bool:
        return bool(self.card and self.card.ok and self.card.content == self.content_hash())
