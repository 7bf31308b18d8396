"""Forked mode: a warm parent that never imports the submission. Each half of the tests runs in a fork of it.

What a fork reports comes over a private pipe; the parent passes it on with the CPU time that it measured itself."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import secrets
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from inloop.verify.inside import session, wire
from inloop.verify.inside.cpu import cpu_of
from inloop.verify.inside.lay import Laid

PR_SET_DUMPABLE = 4
MAX_LINE = 1 << 20
IMPORT_SECONDS = 20.0
"""CPU time that imports and collection may use before the first test."""


def main() -> None:
    """argv: descriptor of the host's socket, then folders to import pytest from."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    host = wire.Channel(socket.socket(fileno=int(sys.argv[1])))
    site = sys.argv[2:]
    standard = list(sys.path)
    sys.path.extend(site)
    sys.argv[:] = ["pytest"]
    session.import_pytest()
    job = host.receive()
    laid = Laid(job)
    os.chdir(job["cwd"])
    prepared = session.Prepared(Path(job["cwd"]))
    sys.path[:] = [*standard, *job["path"], *site]
    laid.remember()
    gc.collect()
    gc.freeze()
    host.send(["ready", laid.dropped])
    with contextlib.suppress(EOFError):
        while True:
            run = host.receive()
            Half(host, run).run(prepared, libc)
            laid.restore()
            host.send(["over"])


class Half:
    """One fork: started, listened to, measured, ended."""

    def __init__(self, host: wire.Channel, job: dict[str, Any]) -> None:
        self.host, self.job = host, job
        self.nonce = secrets.token_hex(16)
        self.pid = 0
        self.base, self.budget = 0.0, max(IMPORT_SECONDS, float(job["cpu"]))
        self.done = False
        self.forged = 0
        self.unread = b""

    def run(self, prepared: session.Prepared, libc: Any) -> None:
        reader, writer = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(reader)
            self.host.sock.close()
            libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
            child(prepared, self.job, writer, self.nonce)
        os.close(writer)
        status, spent = self._listen(reader)
        os.close(reader)
        if self.forged:
            self.host.send(["forged", self.forged])
        if not self.done:
            self.host.send(["died", status, spent])

    def _listen(self, reader: int) -> tuple[int, bool]:
        """Until the fork ends, however it ends: (wait status, whether it had used up its CPU budget)."""
        spent = False
        while True:
            ready, _, _ = select.select([reader], [], [], 0.05)
            if ready and (data := os.read(reader, 1 << 16)):
                self._take(data)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid or (ready and not data) or self.done:
                break
            if self._cpu() - self.base > self.budget:
                spent = True
                break
        self._drain(reader)
        if not pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            status = os.waitpid(self.pid, 0)[1]
        end_all()
        return status, spent

    def _drain(self, reader: int) -> None:
        os.set_blocking(reader, False)
        with contextlib.suppress(BlockingIOError):
            while len(self.unread) < MAX_LINE and (data := os.read(reader, 1 << 16)):
                self._take(data)

    def _cpu(self) -> float:
        return cpu_of(self.pid, {1, os.getpid(), self.pid})

    def _take(self, data: bytes) -> None:
        *lines, self.unread = (self.unread + data).split(b"\n")
        self.unread = self.unread[-MAX_LINE:]
        for line in lines:
            message = self._message(line)
            if message is None:
                self.forged += 1
            else:
                self._pass_on(message)

    def _message(self, line: bytes) -> list[Any] | None:
        with contextlib.suppress(ValueError, RecursionError):
            nonce, message = json.loads(line)
            if nonce == self.nonce and isinstance(message, list):
                return message
        return None

    def _pass_on(self, message: list[Any]) -> None:
        if message[:1] == ["start"]:
            self.base, self.budget = self._cpu(), float(self.job["cpu"])
        elif message[:1] == ["finish"]:
            now = self._cpu()
            message = [*message[:2], max(0.0, now - self.base), now - self.base > self.budget]
            self.base = now
        self.done = self.done or message[:1] == ["end"]
        self.host.send(message)


def child(prepared: session.Prepared, job: dict[str, Any], writer: int, nonce: str) -> None:
    """Run one half of the tests; from the first import on, nothing in this process can be trusted."""
    leave, write, dumps = os._exit, os.write, json.dumps
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)

        def report(message: list[Any]) -> None:
            data = dumps([nonce, message]).encode() + b"\n"
            while data:
                data = data[write(writer, data) :]

        session.lay_tree(prepared.root, job["files"])
        tests = prepared.root / "tests"
        sys.path.append(str(tests))
        prepared.run(tests, job["tests"], job["plugins"], report, job["only"])
    except BaseException as error:
        with contextlib.suppress(BaseException):
            report(["crash", f"{type(error).__name__}: {error}"[: session.DETAIL]])
    leave(0)


def end_all() -> None:
    """Kill and reap everything in this pid namespace but ourselves and its first process."""
    for _ in range(50):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        if not [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]:  # noqa: PTH208
            return
        time.sleep(0.01)
