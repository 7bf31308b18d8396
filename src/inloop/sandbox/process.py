"""No isolation at all: commands run as the caller, in a copy of the workspace. Asked for by its full name only.

For machines where nothing else can run and for code that is trusted. It keeps the protocol: deadlines, capped output,
directory and variables that live on, a diff, a reset. It can't keep a command from reading or killing anything."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from inloop.errors import InloopError, SandboxFault, TaskError
from inloop.sandbox import collect, launch
from inloop.sandbox.base import CommandResult, Diff, Isolation, SandboxSpec
from inloop.sandbox.follow import drain, follow
from inloop.sandbox.tree import Tree

STATE = """
__s=$1 __c=$2; set --
trap '{ printf "cd -- %q\\n" "$PWD"; declare -px; } >"$__s.new" && mv "$__s.new" "$__s"' EXIT
[ ! -e "$__s" ] || . "$__s"
eval "$__c"
"""
"""$1: the file that keeps directory and exported variables; $2: the command."""


class UnisolatedProcess:
    name = "unisolated-process"

    def probe(self) -> Isolation:
        return Isolation(
            backend=self.name, level="none", limits="none",
            notes=("commands run as the caller: they can read, change and kill whatever the caller can",),
        )  # fmt: skip

    def open(self, spec: SandboxSpec) -> ProcessSandbox:
        return ProcessSandbox(spec, self.probe())


class ProcessSandbox:
    def __init__(self, spec: SandboxSpec, isolation: Isolation) -> None:
        if not spec.workspace.is_dir():
            raise InloopError(f"{spec.workspace} is not a folder", fix="name an existing workspace")
        self.spec, self.isolation, self.limits = spec, isolation, spec.limits
        self.id = secrets.token_hex(6)
        self._place = Path(tempfile.mkdtemp(prefix="inloop-unisolated-"))
        self.workdir = str(self._place / "workspace")
        self._lock = threading.RLock()
        self._closed = False
        self._running: subprocess.Popen[bytes] | None = None
        self._sessions: list[int] = []
        self._held: list[int] = []
        try:
            self._fill()
        except BaseException:
            self.close()
            raise

    def _fill(self) -> None:
        shutil.copytree(self.spec.workspace, self.workdir, symlinks=True, ignore=_special)
        for command in self.spec.setup:
            result = self.run(command)
            if not result.ok:
                raise TaskError(
                    f"setup command failed: {command!r}: exit {result.exit_code}\n{result.stderr[-2000:]}",
                    fix="mend `setup` of the task",
                )

    def run(self, command: str, *, timeout: float | None = None) -> CommandResult:
        with self._lock:
            if self._closed:
                raise SandboxFault("the sandbox is closed")
            began = time.monotonic()
            self._running = process = self._spawn(command)
            seconds = self.limits.command_seconds if timeout is None else timeout
            drain(self._held)
            followed = follow(process, began + seconds, self.limits.output_bytes, self._held)
            if followed.limit:
                _kill_session(process.pid)
            code = process.wait()
            self._running = None
            self._sessions.append(process.pid)
            return followed.result(code, time.monotonic() - began)

    def _spawn(self, command: str) -> subprocess.Popen[bytes]:
        env = {**launch_env(), "HOME": str(self._place), **self.spec.env}
        argv = ["/bin/bash", "--norc", "--noprofile", "-c", STATE, "bash", str(self._place / "state"), command]
        return subprocess.Popen(
            argv, cwd=self.workdir, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def _tree(self) -> Tree:
        return Tree(os.open(self.workdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), os.geteuid(), self.workdir)

    def read(self, path: str) -> bytes:
        tree = self._tree()
        try:
            return tree.read(path)
        finally:
            os.close(tree.folder)

    def write(self, path: str, data: bytes) -> None:
        tree = self._tree()
        try:
            tree.write(path, data, file_mb=self.limits.file_mb)
        finally:
            os.close(tree.folder)

    def diff(self) -> Diff:
        return collect.collect(Path(self.workdir), self.spec.workspace)

    def reset(self) -> None:
        with self._lock:
            self._end_all()
            shutil.rmtree(self.workdir)
            (self._place / "state").unlink(missing_ok=True)
            self._fill()

    def _end_all(self) -> None:
        for session in self._sessions:
            _kill_session(session)
        self._sessions.clear()
        for fd in self._held:
            os.close(fd)
        self._held.clear()

    def close(self) -> None:
        self._closed = True
        running = self._running
        if running is not None:
            _kill_session(running.pid)
        with self._lock:
            self._end_all()
            shutil.rmtree(self._place, ignore_errors=True)


def launch_env() -> dict[str, str]:
    """The same variables as inside a sandbox, but for the folders."""
    names = ("LANG", "TERM", "USER", "PYTHONDONTWRITEBYTECODE")
    return {"PATH": os.environ.get("PATH", os.defpath)} | {k: v for k, v in launch.CONSTANT_ENV.items() if k in names}


def _kill_session(session: int) -> None:
    """Kill every process of a session; what left it (setsid) is out of reach here: the backend isolates nothing."""
    for _ in range(20):
        members = [p for p in _pids() if _session(p) == session]
        if not members:
            return
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _session(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return -1
    return -1 if fields[0] in "ZX" else int(fields[3])


def _special(folder: str, names: list[str]) -> list[str]:
    """Devices, sockets and FIFOs are not copied."""
    return [n for n in names if not any(f(Path(folder, n)) for f in (Path.is_symlink, Path.is_file, Path.is_dir))]
