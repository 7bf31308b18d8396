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
import stat
from pathlib import Path
from typing import Any

from inloop.sandbox import cgroup, syscalls, wire
from inloop.sandbox.profile import INSIDE_UID

SPARE_PROCESSES = 4
"""The slot, bubblewrap twice, and the shell that the commands run in: not the agent's."""
SAFE_FD = 400
"""Descriptors are moved up here before they are put in place, so that none is overwritten."""

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
        self.place = self.stage / "slot"
        """An empty folder of the stage; each slot mounts its own file system there, in its own mount namespace."""
        hierarchy = cgroup.Hierarchy(hello["cgroup"]["kind"], hello["cgroup"]["parents"])
        self.group = cgroup.Group(hierarchy, f"{hello['owner']}-{os.getpid()}")
        self.lease = ""
        self.maps: dict[int, int] = {}
        self.complaints = -1
        self.spare: Spare | None = None
        self._forget()

    def enter(self) -> None:
        """Take what a slot keeps for its life: uid, mount and network namespaces, control group.

        The network namespace is empty but for `lo`, the sandboxes have no power over it, and their sockets end with
        them; making one for each sandbox would double the time of a start."""
        if self.as_root:
            self.uid, self.uid_lock = lock_uid(self.hello["uids"], *self.hello["uid_range"])
        syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET)
        syscalls.loopback_up()
        with contextlib.suppress(OSError):
            # connections of a sandbox that is gone must not keep its ports from the next one
            syscalls.write_once("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0")
        syscalls.mount("inloop", str(self.place), "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=0711,size=64m")
        self.group.create()
        self.group.enter(os.getpid())

    def _forget(self) -> None:
        self.mounted: list[str] = []
        self.arguments: list[str] = []
        self.uppers: list[tuple[Path, int]] = []
        self.controls: list[Path] = []
        self.notes: list[str] = []
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
            ready = dict(poll.poll(IDLE_MS))
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

    # what the sandbox will see

    def prepare(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """Bring all mount sources below the stage, where the sandbox's uid can reach them; make writable layers."""
        self.lease, self.limits = request["lease"], request["limits"]
        self.group.limit(max(self.limits["memory_mb"], self.limits["disk_mb"] + 128), self._processes())
        self.group.forget_peak()
        contents = iter(fds)
        for number, item in enumerate(request["mounts"]):
            kind, target = item["kind"], item["dst"]
            if kind == "bind":
                self.arguments += ["--ro-bind", self._bring(item["src"], f"m{number}", item["mapped"]), target]
            elif kind == "data":
                self.arguments += ["--ro-bind", self._file(next(contents), f"f{number}", item["mode"]), target]
            elif kind == "tmp":
                self.arguments += ["--perms", "0755", "--size", str(item["mb"] << 20), "--tmpfs", target]
            elif kind == "control":
                folder = self.place / f"c{number}"
                folder.mkdir(mode=0o755)
                self.controls.append(folder)
                self.arguments += ["--ro-bind", str(folder), target]
            else:
                lower = self._bring(item["lower"], f"m{number}", True, writable=True)
                layer = self._layer(number, item["disk_mb"])
                self.arguments += ["--overlay-src", lower, "--overlay", f"{layer}/up", f"{layer}/work", target]
        folders = [self._open_folder(f"{layer}/up") for layer, _ in self.uppers]
        answer = {"notes": self.notes, "uppers": len(folders)}
        return answer, folders + [self._open_folder(str(folder)) for folder in self.controls]

    def _processes(self) -> int:
        return int(self.limits["processes"]) + SPARE_PROCESSES

    def _bring(self, source: str, name: str, mapped: bool, *, writable: bool = False) -> str:
        """A path below the stage at which `source` appears as the sandbox's own files.

        `writable`: the sandbox will change it (in its layer), so its uid must own it."""
        target = self.place / name
        folder = stat.S_ISDIR(Path(source).stat().st_mode)
        target.mkdir(mode=0o755) if folder else target.touch(mode=0o644)
        if not self.as_root:
            foreign = writable and Path(source).stat().st_uid != self.uid
            syscalls.bind(self._copy(source, name) if foreign else source, str(target))
        elif not (mapped and self._bind_mapped(source, str(target))):
            syscalls.bind(self._copy(source, name) if writable else source, str(target))
        self.mounted.append(str(target))
        return str(target)

    def _bind_mapped(self, source: str, target: str) -> bool:
        owner = Path(source).stat().st_uid
        try:
            if owner not in self.maps:
                self.maps[owner] = syscalls.mapping_namespace(owner, self.uid)
            syscalls.bind_mapped(source, target, self.maps[owner])
        except OSError as error:
            self.notes.append(f"{source} was copied: no id-mapped mount there ({error.strerror})")
            return False
        return True

    def _copy(self, source: str, name: str) -> str:
        """A copy in the lease folder that the sandbox's uid owns."""
        place = Path(self.lease, name)
        if not place.exists():
            shutil.copytree(source, place, symlinks=True, copy_function=_copy_regular, ignore=_special_files)
            if self.as_root:
                for folder, _, names in os.walk(place):
                    for path in [folder, *(f"{folder}/{n}" for n in names)]:
                        os.chown(path, self.uid, self.uid, follow_symlinks=False)
        return str(place)

    def _file(self, source: int, name: str, mode: int) -> str:
        target = self.place / name
        with os.fdopen(os.dup(source), "rb") as data, target.open("wb") as out:
            shutil.copyfileobj(data, out)
        target.chmod(mode)
        return str(target)

    def _layer(self, number: int, megabytes: int) -> Path:
        layer = self.place / f"layer{number}"
        layer.mkdir(mode=0o711)
        self.uppers.append((layer, megabytes))
        self._mount_layer(layer, megabytes)
        return layer

    def _mount_layer(self, layer: Path, megabytes: int) -> None:
        """A sized tmpfs; inodes are limited too, as each costs a kilobyte of kernel memory."""
        size = f"mode=0700,size={megabytes}m,nr_inodes={4096 + megabytes * 256},uid={self.uid},gid={self.uid}"
        syscalls.mount("inloop", str(layer), "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, size)
        for name in ("up", "work"):
            folder = layer / name
            folder.mkdir(mode=0o755)
            if self.as_root:
                os.chown(folder, self.uid, self.uid)

    def _resize_layers(self, *, spare: bool) -> None:
        """Room for an overlay to be mounted over a layer that the agent has filled, and back again once it is."""
        for layer, megabytes in self.uppers:
            now = os.statvfs(layer)
            inodes = max(4096 + megabytes * 256, now.f_files - now.f_ffree) + 64 * spare
            size = max(megabytes << 20, (now.f_blocks - now.f_bfree) * now.f_frsize) + (spare << 20)
            flags = syscalls.MS_REMOUNT | syscalls.MS_NOSUID | syscalls.MS_NODEV
            syscalls.mount(None, str(layer), None, flags, f"size={size},nr_inodes={inodes}")

    @staticmethod
    def _open_folder(path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)

    # processes

    def start(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """Have a waiting fork exec bubblewrap; answer with its pid and a pidfd."""
        if self.started:
            self._resize_layers(spare=True)
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
        command = [self.hello["bwrap"], "--args", str(SAFE_FD + 92), "--", *self._command(request)]
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
            *self.hello["base"], "--proc", "/proc", "--dev", "/dev",
            "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
            "--perms", "1777", "--size", size, "--tmpfs", "/tmp", "--dir", "/var", "--symlink", "../tmp", "/var/tmp",
            *self.arguments, "--remount-ro", "/", "--chdir", request["cwd"], "--info-fd", str(SAFE_FD + 90),
        ]  # fmt: skip
        if (self.stage / "seccomp.bpf").exists():
            out += ["--seccomp", str(SAFE_FD + 91)]
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
        self._resize_layers(spare=False)
        return {"ok": True}, [self._open_folder(f"/proc/{self.init}/root{path}") for path in request["paths"]]

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
            if not _ended(self.child, STOP_SECONDS):
                os.kill(self.child, signal.SIGKILL)
            self._reap(0)
        return {"running": False, **self.status}, []

    def fresh(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """New empty layers; the cost does not depend on what was in the old ones."""
        self.stop(request, fds)
        self.started = False
        for layer, megabytes in self.uppers:
            syscalls.unmount(str(layer))
            self._mount_layer(layer, megabytes)
        return {"ok": True}, [self._open_folder(f"{layer}/up") for layer, _ in self.uppers]

    def release(self, request: Request, fds: list[int]) -> tuple[Request, list[int]]:
        """End the sandbox and drop its mounts; the slot is free for the next one."""
        self.stop(request, fds)
        status = self.status
        for layer, _ in self.uppers:
            syscalls.unmount(str(layer))
        for target in reversed(self.mounted):
            with contextlib.suppress(OSError):
                syscalls.unmount(target)
        self._forget_complaints()
        for path in self.place.iterdir() if self.mounted or self.controls or self.uppers else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
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


class Spare:
    """A fork that waits to become bubblewrap: limits are set and root is dropped before there is anything to do."""

    def __init__(self, uid: int, as_root: bool, limits: dict[int, int]) -> None:
        self.limits = limits
        theirs, self.sock = wire.pair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.sock.close()
                _become(theirs, uid if as_root else -1, limits)
            except BaseException as error:
                os.write(2, f"bwrap: {error}\n".encode())
            finally:
                os._exit(126)
        theirs.close()

    def go(self, command: list[str], targets: list[int], fds: list[int], filter_path: str) -> None:
        """`fds`: bubblewrap's arguments, its information pipe, the default stderr, then one for each target."""
        wire.send(self.sock, {"command": command, "targets": targets, "filter": filter_path}, fds)
        self.sock.close()

    def dismiss(self) -> None:
        self.sock.close()
        os.waitpid(self.pid, 0)


def _become(sock: socket.socket, uid: int, limits: dict[int, int]) -> None:
    """In the fork: limits, identity, descriptors, exec."""
    for name, value in limits.items():
        _, hard = resource.getrlimit(name)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if uid >= 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    order, fds = wire.receive(sock)
    if order is None:
        os._exit(0)
    settings, told, complaints, *given = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, SAFE_FD) for fd in fds]
    null = os.open(os.devnull, os.O_RDWR)
    for target, source in {0: null, 1: null, 2: complaints, **dict(zip(order["targets"], given, strict=True))}.items():
        os.dup2(source, target)
    os.dup2(told, SAFE_FD + 90)
    if Path(order["filter"]).exists():
        # opened anew for each start: the offset of a shared descriptor would be shared too
        os.dup2(os.open(order["filter"], os.O_RDONLY), SAFE_FD + 91)
    os.dup2(settings, SAFE_FD + 92)
    os.execve(order["command"][0], order["command"], {})


def _ended(pid: int, seconds: float) -> bool:
    """Whether a child ended in time; it is not reaped."""
    pidfd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(int(seconds * 1000)))
    finally:
        os.close(pidfd)


def _copy_regular(source: str, target: str) -> None:
    shutil.copy2(source, target, follow_symlinks=False)


def _special_files(folder: str, names: list[str]) -> list[str]:
    """Devices, sockets and FIFOs have no copy."""
    out = []
    for name in names:
        mode = os.lstat(f"{folder}/{name}").st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            out.append(name)
    return out


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
