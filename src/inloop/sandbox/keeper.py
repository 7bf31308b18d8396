"""The keeper: a small process beside each process that opens sandboxes; it starts bubblewrap and cleans up after it.

What starts a sandbox must be single threaded (bubblewrap dies with the *thread* that started it), small (forking a
process with a model in it is slow) and must outlive a killed owner long enough to clean up. It has a private mount
namespace, so that mounts can't be left behind. A `Slot` is a fork of it that serves one sandbox at a time.

This module runs as `python -I -S` and imports only the standard library and its neighbours."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import socket
import sys
from pathlib import Path
from typing import Any

from inloop.sandbox import profile, seccomp, slot, syscalls, wire


def main(fd: int) -> None:
    sock = socket.socket(fileno=fd)
    owner = os.pidfd_open(os.getppid())
    hello, _ = wire.receive(sock)
    if hello is None:
        return
    try:
        keeper = Keeper(sock, owner, hello)
        wire.send(sock, {"ok": True})
    except OSError as error:
        wire.send(sock, {"error": str(error), "errno": error.errno})
        return
    keeper.serve()


class Keeper:
    def __init__(self, sock: socket.socket, owner: int, hello: dict[str, Any]) -> None:
        self.sock, self.owner, self.hello = sock, owner, hello
        self.stage = Path(hello["stage"])
        self._private_mounts(as_root=os.geteuid() == 0)
        self._fill_stage()
        gc.collect()
        gc.freeze()

    def _private_mounts(self, *, as_root: bool) -> None:
        uid, gid = os.geteuid(), os.getegid()
        syscalls.unshare(syscalls.CLONE_NEWNS | (0 if as_root else syscalls.CLONE_NEWUSER))
        if not as_root:
            syscalls.write_once("/proc/self/setgroups", "deny")
            syscalls.write_once("/proc/self/uid_map", f"{uid} {uid} 1")
            syscalls.write_once("/proc/self/gid_map", f"{gid} {gid} 1")
        syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
        syscalls.mount("inloop", str(self.stage), "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=0711,size=64m")

    def _fill_stage(self) -> None:
        """Everything that a sandbox binds is reachable below the stage, whatever folder it lies in."""
        about = self.hello["profile"]
        runtime = []
        for number, folder in enumerate(about["runtime"]):
            runtime += ["--ro-bind", self._bound(folder, f"rt{number}"), folder]
        for folder in about["masked"]:
            runtime += ["--size", "4096", "--tmpfs", folder, "--remount-ro", folder]
        bwrap = about["bwrap"]
        for folder in about["bwrap_folders"]:
            self._bound(folder, f"bwrap/{Path(folder).name}")
        if about["bwrap_folders"]:
            bwrap = str(self.stage / "bwrap" / Path(bwrap).relative_to(Path(about["bwrap_folders"][0]).parent))
        (self.stage / "slot").mkdir(mode=0o711)
        profile.write_etc(self.stage / "etc")
        if seccomp.supported():
            (self.stage / "seccomp.bpf").write_bytes(seccomp.program())
        self.hello |= {
            "bwrap": bwrap,
            "base": [*profile.system_arguments(), "--ro-bind", str(self.stage / "etc"), "/etc", *runtime],
        }

    def _bound(self, source: str, name: str) -> str:
        target = self.stage / name
        target.mkdir(parents=True)
        syscalls.bind(source, str(target))
        return str(target)

    def serve(self) -> None:
        """Fork a slot for each request until the owner is gone. Slots clean up after themselves."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        poll.register(self.owner, select.POLLIN)
        while True:
            ready = dict(poll.poll(5000))
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if self.owner in ready:
                return
            if self.sock.fileno() in ready:
                request, _ = wire.receive(self.sock)
                if request is None:
                    return
                self._fork_slot()

    def _fork_slot(self) -> None:
        theirs, ours = wire.pair()
        child = os.fork()
        if child == 0:
            try:
                theirs.close()
                self.sock.close()
                slot.run(ours, self.owner, self.hello)
            except BaseException as error:  # the fork must never return into the keeper's loop
                print(f"inloop slot: {error!r}", file=sys.stderr)
            finally:
                os._exit(0)
        ours.close()
        wire.send(self.sock, {"pid": child}, [theirs.fileno()])
        theirs.close()
