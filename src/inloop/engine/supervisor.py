"""Starts the engine's process and starts it again when it dies."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from inloop.errors import EngineFault, InloopError
from inloop.files import write_json

RESTARTS = 5
"""Within `WINDOW` seconds; an engine that dies more often has a cause that a restart does not mend."""
WINDOW = 300.0


class Supervisor:
    """Owns one engine process and its folder."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.folder = _short_folder()
        self.threads = int(spec["threads"])
        write_json(self.folder / "spec.json", {**spec, "parent": os.getpid()})
        self.failure: str | None = None
        self._closing = threading.Event()
        self._died: list[float] = []
        self._process = self._spawn()
        self._watcher = threading.Thread(target=self._watch, name="engine supervisor", daemon=True)
        atexit.register(self.close)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, seconds: float) -> None:
        """Until the process listens. Raises what it says kept it from starting."""
        deadline = time.monotonic() + seconds
        while not (self.folder / "socket").exists():
            if self._process.poll() is not None:
                raise self._start_error()
            if time.monotonic() > deadline:
                self.close()
                raise EngineFault(f"the engine did not start in {seconds:.0f} s", fix="see if the machine is loaded")
            time.sleep(0.02)
        self._watcher.start()

    def close(self) -> None:
        """End the process and remove its folder; safe to call twice."""
        self._closing.set()
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _spawn(self) -> subprocess.Popen[bytes]:
        (self.folder / "socket").unlink(missing_ok=True)
        threads = {k: str(self.threads) for k in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        with (self.folder / "engine.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "inloop.engine.process", str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **threads, "TOKENIZERS_PARALLELISM": "false"},
                start_new_session=True,  # Ctrl-C is for the starter, which then closes the engine
            )

    def _watch(self) -> None:
        while True:
            code = self._process.wait()
            if self._closing.is_set():
                return
            now = time.monotonic()
            self._died = [t for t in self._died if now - t < WINDOW] + [now]
            if len(self._died) > RESTARTS:
                self.failure = f"the engine died {len(self._died)} times, last with exit code {code}: {self._tail()}"
                shutil.rmtree(self.folder, ignore_errors=True)  # clients elsewhere see that nobody will come
                return
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = self._spawn()

    def _start_error(self) -> InloopError:
        told, tail = self.folder / "error.json", self._tail()
        said = json.loads(told.read_text()) if told.is_file() else None
        self.close()
        if said:
            return InloopError(said["message"], fix=said["fix"])
        return EngineFault(f"the engine's process ended with {self._process.returncode}: {tail}")

    def _tail(self) -> str:
        log = self.folder / "engine.log"
        return log.read_text(errors="replace").strip()[-800:] if log.is_file() else ""


def _short_folder() -> Path:
    """A private folder whose socket path fits the 107 bytes that the kernel allows."""
    folder = tempfile.mkdtemp(prefix="inloop-engine-")
    if len(folder) > 90:
        Path(folder).rmdir()
        folder = tempfile.mkdtemp(prefix="inloop-engine-", dir="/tmp")
    return Path(folder)
