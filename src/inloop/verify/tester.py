"""The warm, trusted test process of this process: started once, it forks a test run per half and verification."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import threading

from inloop.errors import SandboxFault, VerifierFault
from inloop.sandbox.launch import Launch, Launched, launch
from inloop.tasks.task import Limits
from inloop.verify import place

START_SECONDS = 60.0
LIMITS = Limits(wall_seconds=1e9, cpu_seconds=1e8, memory_mb=4096, processes=1024, file_mb=256, disk_mb=1024)
RUN_MEMORY = 1 << 30
"""Address space of one test run, in bytes: a submission's values can't exhaust the others' memory."""


class Tester:
    """Thread safe. Raises VerifierFault when the process can't be started or is gone."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            spec = Launch(
                argv=place.program("tester", "3", *place.site_folders()), mounts=(place.code(), *place.site_mounts()),
                limits=LIMITS, fds={3: theirs.fileno()}, owner="the verifier's test process",
            )  # fmt: skip
            self.job: Launched = launch(spec)
        finally:
            theirs.close()
        self.control.settimeout(START_SECONDS)
        if self._hello() != b"R":
            self.close()
            raise VerifierFault(f"the test process did not start: {self.job.complaints[-500:]}")

    def _hello(self) -> bytes:
        try:
            return self.control.recv(1)
        except OSError:
            return b""

    def submit(self, job: socket.socket, meter: socket.socket) -> None:
        """Fork a test run that reads its work from `job` and asks about the submission over `meter`."""
        with self.lock:
            try:
                socket.send_fds(self.control, [b"J"], [job.fileno(), meter.fileno()])
            except OSError as error:
                raise VerifierFault(f"the test process is gone ({error.strerror})") from error

    @property
    def alive(self) -> bool:
        return self.job.wait(0) is None

    def close(self) -> None:
        self.control.close()
        self.job.close()


_shared: Tester | None = None
_lock = threading.Lock()


def shared() -> Tester:
    """This process's tester; a dead one, or one that a parent process made, is replaced."""
    global _shared
    with _lock:
        if _shared is not None and _shared.pid == os.getpid():
            if _shared.alive:
                return _shared
            _shared.close()
        _shared = Tester()
        return _shared


@atexit.register
def close() -> None:
    global _shared
    if _shared is not None and _shared.pid == os.getpid():
        with contextlib.suppress(SandboxFault):  # the keeper may have gone first; it ends what it started
            _shared.close()
        _shared = None
