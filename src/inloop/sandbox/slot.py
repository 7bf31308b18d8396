"""One slot of the keeper: a uid, a control group and a mount namespace that serve one sandbox after another.

It enters its control group once, because that can take 15 ms; what it forks starts inside. Requests come one at a
time; when the owner is gone the slot ends its sandbox, removes its group and its lease folder, and exits."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
from pathlib import Path
from typing import Any

from inloop.sandbox import cgroup, syscalls, wire
from inloop.sandbox.profile import INSIDE_UID
from inloop.sandbox.spare import FILTER_FD, INFO_FD, SETTINGS_FD, Spare, ended
from inloop.sandbox.view import View, open_folder

SPARE_PROCESSES = 5
"""The slot and its spare fork, bubblewrap twice, the shell that the commands run in: not the agent's."""
STOP_SECONDS = 5.0
IDLE_MS = 2
"""No request for so long: time to prepare the next start."""

Request = dict[str, Any]


def run(sock: socket.socket, owner: int, hello: Request) -> None:
    slot = Slot(hello)
    try:
        slot.enter()
        slot.serve(sock, owner)
    except OSError as error:
        with contextlib.suppress(OSError):
            wire.send(sock, {"error": str(error)})
    finally:
        slot.clean_up()


class Slot:
    def __init__(self, hello: Request) -> None:
        self.hello = hello
        self.as_root = os.geteuid() == 0
        self.uid, self.uid_lock = os.geteuid(), -1
        self.stage = Path(hello["stage"])
        hierarchy = cgroup.Hierarchy(hello["cgroup"]["kind"], hello["cgroup"]["parents"])
        self.group = cgroup.Group(hierarchy, f"{hello['owner']}-{os.getpid()}")
        self.lease = ""
        self.view = View(self.stage / "slot", self.uid)
        self.complaints = -1
        self.spare: Spare | None = None
        self._forget()

    def enter(self) -> None:
        """Take what a slot keeps for its life: uid, mount and network namespaces, control group.

        The network namespace is empty but for `lo`, the sandboxes have no power over it, and their sockets end with
        them; making one for each sandbox would double the time of a start."""
        if self.as_root:
            self.uid, self.uid_lock = lock_uid(self.hello["uids"], *self.hello["uid_range"])
            self.view.uid = self.uid
        syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET)
        syscalls.loopback_up()
        with contextlib.suppress(OSError):
            # connections of a sandbox that is gone must not keep its ports from the next one
            syscalls.write_once("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0")
        self.view.mount()
        self.group.create()
        self.group.enter(os.getpid())

    def _forget(self) -> None:
        self.limits: Request = {}
        self.child = self.init = 0
        self.started = False
        self.info: Request = {}
        self.status: Request = {}
        self.complaints = -1

    def serve(self, sock: socket.socket, owner: int) -> None:
        wire.send(sock, {"uid": self.uid, "pid": os.getpid(), "groups": [str(p) for p in self.group.folders.values()]})
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        poll.register(owner, select.POLLIN)
        while True:
            ready = dict(poll.poll(IDLE_MS if self.spare is None and self.limits else None))
            if not ready:
                self.idle()
                continue
            if owner in ready:
                return
            request, fds = wire.receive(sock)
            if request is None or request["op"] == "quit":
                return
            answer, out = self._answer(request, fds)
            for fd in fds:
                os.close(fd)
            wire.send(sock, answer, out)
            for fd in out:
                os.close(fd)

    def _answer(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        handlers = {
            "prepare": self.prepare, "start": self.start, "open": self.open, "status": self.poll,
            "stop": self.stop, "fresh": self.fresh, "release": self.release,
        }  # fmt: skip
        try:
            return handlers[request["op"]](request, fds)
        except OSError as error:
            return {"error": str(error), "errno": error.errno}, []

    def prepare(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """Bring all mount sources below the stage, where the sandbox's uid can reach them; make writable layers."""
        self.lease, self.limits = request["lease"], request["limits"]
        self.group.limit(max(self.limits["memory_mb"], self.limits["disk_mb"] + 128), self._processes())
        self.group.forget_peak()
        contents = iter(fds)
        for number, item in enumerate(request["mounts"]):
            self.view.add(number, item, contents, self.lease)
        folders = self.view.open_uppers()
        return {"notes": self.view.notes, "uppers": len(folders)}, folders + self.view.open_controls()

    def _processes(self) -> int:
        return int(self.limits["processes"]) + SPARE_PROCESSES

    # processes

    def start(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """Have a waiting fork exec bubblewrap; answer with its pid and a pidfd."""
        if self.started:
            self.view.resize_layers(spare=True)
        self.started, self.status, self.init = True, {}, 0
        self._forget_complaints()
        self.complaints = os.memfd_create("complaints")
        settings = os.memfd_create("arguments")
        os.write(settings, b"".join(os.fsencode(a) + b"\0" for a in self._bubblewrap(request)))
        os.lseek(settings, 0, os.SEEK_SET)
        info, told = os.pipe()
        limits = self._rlimits()
        if self.spare and self.spare.limits != limits:
            self.spare.dismiss()
            self.spare = None
        worker = self.spare or Spare(self.uid, self.as_root, limits)
        self.spare, self.child = None, worker.pid
        command = [self.hello["bwrap"], "--args", str(SETTINGS_FD), "--", *self._command(request)]
        worker.go(command, request["fds"], [settings, told, self.complaints, *fds], str(self.stage / "seccomp.bpf"))
        os.close(settings)
        os.close(told)
        self.info = self._read_info(info)
        self.init = int(self.info.get("child-pid", 0))
        return {"pid": self.child, "init": self.init}, [os.pidfd_open(self.child)]

    def idle(self) -> None:
        """Between requests: have the fork that the next start needs ready, with the limits of this one."""
        if self.spare is None and self.limits:
            self.spare = Spare(self.uid, self.as_root, self._rlimits())

    def _bubblewrap(self, request: Request) -> list[str]:
        size = str(self.limits["disk_mb"] << 20)
        out = [
            "--unshare-all", "--share-net", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
            "--uid", str(INSIDE_UID), "--gid", str(INSIDE_UID), "--hostname", "sandbox", "--clearenv",
            "--perms", "1777", "--size", size, "--tmpfs", "/tmp", "--dir", "/var", "--symlink", "../tmp", "/var/tmp",
            *self.hello["base"],  # after /tmp: the interpreter may live there
            "--proc", "/proc", "--dev", "/dev",
            "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
            *self.view.arguments, "--remount-ro", "/", "--chdir", request["cwd"], "--info-fd", str(INFO_FD),
        ]  # fmt: skip
        if (self.stage / "seccomp.bpf").exists():
            out += ["--seccomp", str(FILTER_FD)]
        for name, value in request["env"].items():
            out += ["--setenv", name, value]
        return out

    def _rlimits(self) -> dict[int, int]:
        wanted = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: self.limits["file_mb"] << 20,
            resource.RLIMIT_CPU: int(self.limits["cpu_seconds"]) + 1,
            resource.RLIMIT_NOFILE: 4096,
        }
        if self.group.kind == "rlimits":
            wanted[resource.RLIMIT_DATA] = self.limits["memory_mb"] << 20
        if self.as_root:
            wanted[resource.RLIMIT_NPROC] = self._processes() + 1
        return wanted

    def _command(self, request: Request) -> list[str]:
        """An ordinary user's processes are counted in the sandbox's own user namespace: the limit is set inside."""
        argv: list[str] = request["argv"]
        if self.as_root or not request["limit_inside"]:
            return argv
        return ["/bin/bash", "-c", f'ulimit -u {self.limits["processes"]} && exec "$@"', "inloop", *argv]

    @staticmethod
    def _read_info(info: int) -> Request:
        raw = b""
        while b"}" not in raw:
            chunk = os.read(info, 4096)
            if not chunk:
                break
            raw += chunk
        os.close(info)
        with contextlib.suppress(ValueError):
            return dict(json.loads(raw))
        return {}

    def open(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """Descriptors of folders as the running sandbox, which is up by now, sees them."""
        self.view.resize_layers(spare=False)
        return {"ok": True}, [open_folder(f"/proc/{self.init}/root{path}") for path in request["paths"]]

    def poll(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        self._reap(os.WNOHANG)
        return {"running": bool(self.child), **self.status}, []

    def _reap(self, flags: int) -> None:
        if not self.child:
            return
        pid, status, usage = os.wait4(self.child, flags)
        if pid:
            self.child = 0
            self.status = {
                "code": os.waitstatus_to_exitcode(status),
                "cpu_seconds": usage.ru_utime + usage.ru_stime,
                "peak_mb": usage.ru_maxrss / 1024,
                "complaints": os.pread(self.complaints, 4096, 0).decode("utf-8", "replace"),
            }

    def stop(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """Kill the pid namespace: its first process can't end before all the others are gone, and bubblewrap outside
        ends after it."""
        if self.child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.init or self.child, signal.SIGKILL)
            if not ended(self.child, STOP_SECONDS):
                os.kill(self.child, signal.SIGKILL)
            self._reap(0)
        return {"running": False, **self.status}, []

    def fresh(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """New empty layers; the cost does not depend on what was in the old ones."""
        self.stop(request, fds)
        self.started = False
        self.view.empty_layers()
        return {"ok": True}, self.view.open_uppers()

    def release(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """End the sandbox and drop its mounts; the slot is free for the next one."""
        self.stop(request, fds)
        status = self.status
        self._forget_complaints()
        self.view.clear()
        if self.lease:
            shutil.rmtree(self.lease, ignore_errors=True)
        self.lease = ""
        self._forget()
        return {"running": False, **status}, []

    def _forget_complaints(self) -> None:
        if self.complaints >= 0:
            os.close(self.complaints)
            self.complaints = -1

    def clean_up(self) -> None:
        if self.spare:
            self.spare.dismiss()
        with contextlib.suppress(OSError):
            self.release({}, [])
        with contextlib.suppress(OSError):
            self.group.leave(os.getpid())
        self.group.remove()


def lock_uid(folder: str, first: int, last: int) -> tuple[int, int]:
    """(uid, descriptor that holds its lock): a host uid that no live sandbox of this machine has."""
    count = last - first + 1
    for step in range(count):
        uid = first + (os.getpid() * 7 + step) % count
        fd = os.open(f"{folder}/{uid}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return uid, fd
        except OSError:
            os.close(fd)
    raise OSError(0, f"all {count} sandbox uids are in use")
