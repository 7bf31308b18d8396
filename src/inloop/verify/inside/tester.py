"""Split mode, trusted side: a warm process that forks one pytest run a job. It never imports a submission, and what
it is sent by one is plain values."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import secrets
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from inloop.verify.inside import proxy, session, wire

ROOT = Path("/tmp")


def main() -> None:
    """argv: descriptor of the control socket, then folders to import pytest from. One message and two descriptors a
    job: the job's own socket, and the meter of its worker."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    sys.path.extend(sys.argv[2:])
    sys.argv[:] = ["tester"]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    session.import_pytest()
    prepared = session.Prepared(ROOT)
    gc.collect()
    gc.freeze()
    control.sendall(b"R")
    while True:
        message, fds, _, _ = socket.recv_fds(control, 1, 2)
        if not message:
            return
        if len(fds) == 2 and not os.fork():
            control.close()
            child(prepared, fds)
        for fd in fds:
            os.close(fd)


def child(prepared: session.Prepared, fds: list[int]) -> None:
    """Run one half of the hidden tests and leave. Never returns."""
    job_socket, meter = (socket.socket(fileno=fd) for fd in fds)
    channel = wire.Channel(job_socket)
    folder = ROOT / secrets.token_hex(8)
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        job = channel.receive()
        limit(job)
        run(prepared, job, folder, channel, proxy.Remote(meter, job["modules"], job["cpu"]))
    except BaseException as error:
        with contextlib.suppress(BaseException):
            channel.send(["crash", f"{type(error).__name__}: {error}"[: session.DETAIL]])
    finally:
        with contextlib.suppress(BaseException):
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def limit(job: dict[str, Any]) -> None:
    """The tests are trusted, but a submission's values may make them run on: CPU, wall time and memory are bounded."""
    signal.alarm(int(job["wall"]) + 1)
    seconds = int(job["wall"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (job["memory"], job["memory"]))


def run(prepared: session.Prepared, job: dict[str, Any], folder: Path, channel: wire.Channel, remote: Any) -> None:
    tests = folder / "tests"
    session.lay_tree(folder, job["files"])
    tests.mkdir(parents=True, exist_ok=True)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
    os.environ["TMPDIR"] = str(folder)
    os.chdir(folder)
    sys.path.extend([str(tests), str(folder), *job["path"]])
    remote.install()

    def report(message: list[Any]) -> None:
        if message[0] == "start":
            remote.mark()
        elif message[0] == "finish":
            message = [*message, *remote.mark()]
        channel.send(message)

    prepared.run(tests, job["tests"], job["plugins"], report, None)
