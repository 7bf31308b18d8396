"""`inloop env validate`: OpenEnv's own graders on a package, run without docker, or on a server's URL."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from openenv.validation import ExecResult, Level, ProviderCapability, run_validation
from openenv.validation.providers import StartupError
from openenv.validation.runner import source_digest

from inloop.errors import InloopError

LEVELS = {"static": Level.STATIC, "runtime": Level.RUNTIME}
START_SECONDS = 120.0


class LocalProvider:
    """OpenEnv's `ValidationProvider` without docker: the package's server as a process of this machine, on loopback.
    What it can't enforce it does not claim: no network policy, no limits on the server itself."""

    name = "inloop-local"
    capabilities = frozenset({ProviderCapability.IMAGE_BUILD})
    supported_network_modes = frozenset({"public"})

    def __init__(self) -> None:
        self._roots: dict[str, Path] = {}

    def build(self, root: Path, execution: Any) -> str:
        """Nothing is built; the reference is the digest of the sources."""
        reference = f"sha256:{hashlib.sha256(source_digest(Path(root)).encode()).hexdigest()}"
        self._roots[reference] = Path(root).resolve()
        return reference

    def start(self, spec: Any) -> LocalSubject:
        """Raises StartupError when /health does not answer."""
        return LocalSubject(self._roots[spec.image_ref])


class LocalSubject:
    def __init__(self, root: Path) -> None:
        port = _free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        path = os.pathsep.join([str(root / "vendor"), str(root), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        env = {k: v for k, v in os.environ.items() if k != "INLOOP_ENV_TOKEN"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "server.app:app", "--host", "127.0.0.1", "--port", str(port)],
            cwd=root, env={**env, "PYTHONPATH": path, "INLOOP_ENV_AUTH": "none", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=self._log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                if httpx.get(f"{self.base_url}/health", timeout=2, trust_env=False).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.1)
        raise StartupError(f"the server did not start: {self.logs(2000)}")

    def inspect(self) -> dict[str, Any]:
        return {"provider": LocalProvider.name, "pid": self._process.pid, "isolated": False}

    def logs(self, max_bytes: int = 65536) -> str:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - max_bytes))
        return self._log.read().decode("utf-8", "replace")

    def exec(self, argv: list[str], timeout_s: float) -> ExecResult:
        raise NotImplementedError("this provider has no EXEC capability")

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def validate_package(folder: Path, level: str) -> Any:
    """OpenEnv's `ValidationReport`. Raises InloopError for what is no package."""
    from openenv.validation import SignatureError, UnsupportedPackageError

    if level not in LEVELS:
        raise InloopError(f"--level {level}", fix=f"one of {', '.join(LEVELS)}")
    try:
        return run_validation(folder, max_level=LEVELS[level], provider=LocalProvider())
    except (SignatureError, UnsupportedPackageError) as error:
        raise InloopError(f"{folder}: {error}", fix="inloop env init DIR --tasks TASKS") from None


def validate_url(url: str, token: str | None = None) -> dict[str, Any]:
    """OpenEnv's checks of a running server; the token travels as the password of the URL."""
    from openenv.cli._validation import validate_running_environment

    at = url.replace("://", f"://token:{token}@", 1) if token else url
    report: dict[str, Any] = validate_running_environment(at, timeout_s=30)
    return {**report, "target": url}


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
