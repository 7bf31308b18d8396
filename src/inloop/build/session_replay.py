"""A session's steps done again, inside a sandbox: what they leave behind is the state that it ended in."""

from __future__ import annotations

import re
import shlex
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from inloop.build.draft import Drop
from inloop.build.session_patch import apply_edits
from inloop.build.session_steps import Step
from inloop.errors import TaskError
from inloop.sandbox.base import Backend, Diff, Sandbox, SandboxSpec
from inloop.tasks.folder import write_files
from inloop.tasks.task import Limits
from inloop.verify.oracle import apply_patch

LIMITS = Limits(wall_seconds=600.0, cpu_seconds=600.0, command_seconds=60.0, memory_mb=1024, processes=128)
GIT = "git init -q . && git add -A && git -c user.name=s -c user.email=s@localhost commit -qm start"
"""Some sessions ask git; it sees a repository that begins with the start state. Inside the sandbox, as all of it."""


@dataclass
class Replay:
    """Bound to one sandbox. Edits that do not apply are counted, never raised: the trace may hold failed ones."""

    sandbox: Sandbox
    root: str
    """The folder that the session ran in; its paths are taken to be the workspace's."""
    fresh_shell: bool = False
    applied: int = 0
    failed: int = 0
    outside: int = 0
    _git: bool = field(default=False, init=False)

    def run(self, steps: Iterable[Step], seconds: float = LIMITS.wall_seconds) -> None:
        """Raises Drop when it takes longer than `seconds`."""
        until = time.monotonic() + seconds
        for step in steps:
            left = until - time.monotonic()
            if left <= 0:
                raise Drop("replaying it takes too long")
            if step.kind == "run":
                self._command(step, min(left, LIMITS.command_seconds))
            else:
                self._change(step)

    def _command(self, step: Step, seconds: float) -> None:
        command = self._inside(step.text)
        if re.search(r"\bgit\b", command) and not self._git:
            self.sandbox.run(f"cd {self.sandbox.workdir} && {GIT}", timeout=seconds)
            self._git = True
        if self.fresh_shell or step.folder:
            folder = self._inside(step.folder) or self.sandbox.workdir
            command = f"(cd {folder}\n{command}\n)"
        self.sandbox.run(command, timeout=seconds)

    def _inside(self, text: str) -> str:
        """The session's folder is the workspace's now."""
        if not self.root or self.root == self.sandbox.workdir:
            return text
        return re.sub(re.escape(self.root) + r"(?![\w.-])", self.sandbox.workdir, text)

    def _change(self, step: Step) -> None:
        try:
            edits = apply_edits(step, self._read)
        except ValueError:
            self.failed += 1
            return
        for path, text in edits.items():
            if not self._write(path, text):
                return
        self.applied += 1

    def _path(self, path: str) -> str:
        """Relative to the workspace. Raises ValueError for one outside of it."""
        plain = PurePosixPath(self._inside(path))
        if plain.is_absolute():
            plain = plain.relative_to(self.sandbox.workdir)
        if ".." in plain.parts:
            raise ValueError("outside of the repository")
        return plain.as_posix()

    def _read(self, path: str) -> str | None:
        """None where there is no such file. Raises ValueError outside of the workspace."""
        try:
            return self.sandbox.read(self._path(path)).decode("utf-8", "surrogateescape")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def _write(self, path: str, text: str | None) -> bool:
        try:
            name = self._path(path)
            if text is None:
                self.sandbox.run(f"rm -f -- {shlex.quote(f'{self.sandbox.workdir}/{name}')}")
            else:
                self.sandbox.write(name, text.encode("utf-8", "surrogateescape"))
        except (OSError, ValueError):
            self.outside += 1
            return False
        return True


def replay(
    steps: Sequence[Step], files: Mapping[str, bytes], root: str, backend: Backend, *, fresh: bool, owner: str
) -> tuple[Diff, Replay]:
    """What the steps change in `files`, and how it went. Raises Drop, and SandboxFault."""
    with tempfile.TemporaryDirectory(prefix="inloop-session-") as temporary:
        folder = Path(temporary) / "tree"
        folder.parent.chmod(0o755)
        write_files(folder, files)
        sandbox = backend.open(SandboxSpec(workspace=folder, limits=LIMITS, owner=owner))
        try:
            doing = Replay(sandbox, root or guess_root(steps, files), fresh)
            doing.run(steps)
            return sandbox.diff(), doing
        finally:
            sandbox.close()


def patched(patch: str, files: Mapping[str, bytes]) -> Diff:
    """The changes of a recorded patch, which is read as data: nothing runs. Raises Drop when it does not apply."""
    with tempfile.TemporaryDirectory(prefix="inloop-session-") as temporary:
        write_files(Path(temporary), files)
        try:
            return apply_patch(patch, Path(temporary))
        except TaskError:
            raise Drop("its recorded patch does not apply to its start") from None


def guess_root(steps: Iterable[Step], files: Mapping[str, bytes]) -> str:
    """The folder that most absolute paths share before they name a file of the repository; '' if there is none."""
    found: Counter[str] = Counter()
    for step in steps:
        parts = PurePosixPath(step.path).parts
        if parts and parts[0] == "/":
            cuts = (i for i in range(2, len(parts)) if "/".join(parts[i:]) in files)
            if (at := next(cuts, None)) is not None:
                found[str(PurePosixPath(*parts[:at]))] += 1
    return found.most_common(1)[0][0] if found else ""
