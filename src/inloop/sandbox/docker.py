"""The docker backend: one container an episode, driven through the documented `docker` command line.

The container has no network, no capabilities, a read-only root, an unprivileged user and sized tmpfs folders; it is
kept alive by a first process that only waits, and commands come by `docker exec`. The image needs bash and tar."""

from __future__ import annotations

import contextlib
import io
import secrets
import shlex
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
from pathlib import Path

from inloop.errors import InloopError, SandboxFault, TaskError
from inloop.sandbox import collect, lease
from inloop.sandbox.base import CommandResult, Diff, Isolation, LimitName, SandboxSpec
from inloop.sandbox.follow import Followed, follow
from inloop.sandbox.launch import CONSTANT_ENV
from inloop.sandbox.process import STATE
from inloop.sandbox.tree import READ_MAX, relative_path

DEFAULT_IMAGE = "python:3.11-slim"
USER = "1000:1000"
WAITER = "while :; do sleep 3600 & wait; done"
"""The first process: reaps orphans and survives `kill -9 -1`, which the kernel does not send to it."""
STATE_FILE = "/tmp/.inloop-state"
ANSWER_SECONDS = 120.0
FIX = "start docker and let this user reach it (`docker version`), or choose the backend 'bubblewrap'"


class Docker:
    name = "docker"

    def __init__(self, image: str = DEFAULT_IMAGE) -> None:
        self.image = image

    def probe(self) -> Isolation:
        """Asks the engine for its version; no container is started."""
        version = _docker("version", "--format", "{{.Server.Version}}").stdout.decode().strip()
        return Isolation(backend=self.name, level="strong", limits="docker", notes=(f"docker engine {version}",))

    def open(self, spec: SandboxSpec) -> DockerSandbox:
        return DockerSandbox(spec, self.probe(), self.image)


class DockerSandbox:
    def __init__(self, spec: SandboxSpec, isolation: Isolation, image: str) -> None:
        if not spec.workspace.is_dir():
            raise InloopError(f"{spec.workspace} is not a folder", fix="name an existing workspace")
        self.spec, self.isolation, self.limits, self.image = spec, isolation, spec.limits, image
        self.workdir = spec.workdir
        self._lock = threading.RLock()
        self._closed = False
        self._container = f"inloop-{secrets.token_hex(6)}"
        self._lease = lease.take(spec.owner, container=self._container)
        self.id = self._lease.id
        self._began = time.monotonic()
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        _docker("run", "--detach", "--name", self._container, *self._options(), self.image, "/bin/bash", "-c", WAITER)
        self._send(_packed(self.spec.workspace))
        for command in self.spec.setup:
            result = self.run(command)
            if not result.ok:
                raise TaskError(
                    f"setup command failed: {command!r}: exit {result.exit_code}\n{result.stderr[-2000:]}",
                    fix="mend `setup` of the task",
                )

    def _options(self) -> list[str]:
        limits, size = self.limits, f"{self.limits.disk_mb}m"
        variables = CONSTANT_ENV | self.spec.env
        return [
            "--label", f"inloop.process={self._lease.process}", "--network", "none", "--read-only",
            "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", USER, "--hostname", "sandbox",
            "--pids-limit", str(limits.processes + 2), "--memory", f"{limits.memory_mb}m",
            "--memory-swap", f"{limits.memory_mb}m", "--shm-size", size,
            "--ulimit", f"fsize={limits.file_mb << 20}", "--ulimit", f"cpu={int(limits.cpu_seconds) + 1}",
            "--ulimit", "core=0", "--tmpfs", f"/tmp:rw,nosuid,nodev,exec,mode=1777,size={size}",
            "--tmpfs", f"{self.workdir}:rw,nosuid,nodev,exec,mode=0777,size={size}", "--workdir", self.workdir,
            *(word for name, value in variables.items() for word in ("--env", f"{name}={value}")),
        ]  # fmt: skip

    def _exec(self, *command: str, stdin: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
        return _docker("exec", "--interactive", self._container, *command, stdin=stdin, check=check)

    def _send(self, archive: bytes) -> None:
        """`docker cp` can't write to a tmpfs of a running container; tar inside can."""
        self._exec("tar", "-x", "-f", "-", "-C", self.workdir, stdin=archive)

    def run(self, command: str, *, timeout: float | None = None) -> CommandResult:
        with self._lock:
            self._check_open()
            self._lease.beat()
            began = time.monotonic()
            left = self._began + self.limits.wall_seconds - began
            seconds = min(self.limits.command_seconds if timeout is None else timeout, max(left, 0.0))
            argv = ["docker", "exec", self._container, "/bin/bash", "--norc", "--noprofile", "-c", STATE, "bash"]
            process = subprocess.Popen(
                [*argv, STATE_FILE, command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            followed = follow(process, began + seconds, self.limits.output_bytes)
            if followed.limit:
                self._kill_all()
                process.kill()
            code = process.wait()
            return followed.result(code, time.monotonic() - began, self._met(code, followed))

    def _kill_all(self) -> None:
        """Ending the client does not end what it started inside; this does, background processes included."""
        self._exec("/bin/bash", "-c", "kill -9 -1", check=False)

    def _met(self, code: int, followed: Followed) -> LimitName:
        if self._closed:
            raise SandboxFault("the sandbox was closed while a command ran")
        if code == 137:
            killed = _docker("inspect", "--format", "{{.State.OOMKilled}}", self._container).stdout
            return "memory" if killed.strip() == b"true" else ""
        if code and "No space left on device" in followed.stderr.text():
            return "disk"
        return ""

    def read(self, path: str) -> bytes:
        with self._lock:
            inside = self._inside(path)
            told = self._exec("stat", "--dereference", "--format", "%F %s", "--", inside, check=False)
            kind, _, size = told.stdout.decode().strip().rpartition(" ")
            if told.returncode:
                raise FileNotFoundError(2, "no such file", path)
            if kind == "directory":
                raise IsADirectoryError(21, "is a folder", path)
            if not kind.startswith("regular") or int(size) > READ_MAX:
                raise ValueError(f"{path} is no regular file, or larger than {READ_MAX >> 20} MiB")
            self._stays_inside(inside, path)
            return self._exec("cat", "--", inside).stdout

    def write(self, path: str, data: bytes) -> None:
        with self._lock:
            inside = self._inside(path)
            folder = shlex.quote(str(Path(inside).parent))
            self._stays_inside(inside, path)
            told = self._exec(
                "/bin/bash", "-c", f"mkdir -p -- {folder} && cat > {shlex.quote(inside)}", stdin=data, check=False
            )
            if told.returncode:
                said = told.stderr.decode("utf-8", "replace").strip()
                raise IsADirectoryError(21, said, path) if "directory" in said else OSError(said)

    def _inside(self, path: str) -> str:
        self._check_open()
        return f"{self.workdir}/{relative_path(self.workdir, path)}"

    def _stays_inside(self, inside: str, path: str) -> None:
        """Raises ValueError when links lead out of the workspace; what they lead to is the container's alone."""
        real = self._exec("realpath", "--canonicalize-missing", "--", inside).stdout.decode().rstrip("\n")
        if not real.startswith(self.workdir + "/"):
            raise ValueError(f"{path} leads outside the workspace")

    def diff(self) -> Diff:
        with self._lock:
            self._check_open()
            archive = self._exec("tar", "-c", "-f", "-", "-C", self.workdir, ".").stdout
            with tempfile.TemporaryDirectory(prefix="inloop-docker-") as folder:
                skipped = _unpacked(archive, Path(folder), self.limits.disk_mb << 20)
                diff = collect.collect(Path(folder), self.spec.workspace)
            return Diff(changed=diff.changed, deleted=diff.deleted, rejected=(*diff.rejected, *skipped))

    def reset(self) -> None:
        with self._lock:
            self._check_open()
            _docker("rm", "--force", "--volumes", self._container)
            self._start()

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxFault("the sandbox is closed")

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            with contextlib.suppress(SandboxFault):
                _docker("rm", "--force", "--volumes", self._container)
            lease.give_back(self._lease)


def _docker(*arguments: str, stdin: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
    """Raises SandboxFault when docker is missing, does not answer, or (with `check`) refuses."""
    if not shutil.which("docker"):
        raise SandboxFault("docker is not installed", fix=FIX)
    try:
        done = subprocess.run(["docker", *arguments], input=stdin, capture_output=True, timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        raise SandboxFault(f"docker {arguments[0]} did not answer in {ANSWER_SECONDS:.0f} s", fix=FIX) from None
    if check and done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise SandboxFault(f"docker {arguments[0]}: {said or f'exit {done.returncode}'}", fix=FIX)
    return done


def _packed(folder: Path) -> bytes:
    """Regular files, folders and links; sockets, FIFOs and devices have no place in a workspace."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(folder, arcname=".", filter=_plain_entry)
    return out.getvalue()


def _plain_entry(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    entry.uid = entry.gid = 1000
    entry.uname = entry.gname = ""
    return entry if entry.isfile() or entry.isdir() or entry.issym() or entry.islnk() else None


def _unpacked(archive: bytes, folder: Path, most: int) -> list[tuple[str, str]]:
    """Unpack what an agent may have forged; returns what was left out and why."""
    skipped, total = [], 0
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as entries:
            for entry in entries:
                total += entry.size
                if total > most:
                    raise SandboxFault("the workspace is larger than its limit")
                try:
                    entries.extract(entry, folder, filter="data")
                except (tarfile.FilterError, OSError) as error:
                    skipped.append((entry.name, str(error)))
    except tarfile.TarError as error:
        skipped.append((".", f"the archive can't be read to its end: {error}"))
    return skipped
