"""What one sandbox will see: its mounts, brought to where its uid can reach them, and the layers that it writes to."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inloop.sandbox import syscalls

FLAGS = syscalls.MS_NOSUID | syscalls.MS_NODEV


class View:
    def __init__(self, place: Path, uid: int) -> None:
        self.place, self.uid = place, uid
        """`place`: an empty folder of the stage; each slot mounts its own there, in its own mount namespace."""
        self.as_root = os.geteuid() == 0
        self.maps: dict[int, int] = {}
        """Owner on the host -> user namespace that maps it to our uid."""
        self._forget()

    def _forget(self) -> None:
        self.mounted: list[str] = []
        self.arguments: list[str] = []
        """Of bubblewrap."""
        self.uppers: list[tuple[Path, int]] = []
        """Layers, with their size in MB."""
        self.controls: list[Path] = []
        self.notes: list[str] = []

    def mount(self) -> None:
        syscalls.mount("inloop", str(self.place), "tmpfs", FLAGS, "mode=0711,size=64m")

    def add(self, number: int, item: dict[str, Any], contents: Iterator[int], lease: str) -> None:
        """One mount, as `launch` describes it; the content of a file is the next of the descriptors `contents`."""
        kind, target = item["kind"], item["dst"]
        if kind == "bind":
            brought = self._bring(item["src"], f"m{number}", lease, mapped=item["mapped"])
            self.arguments += ["--ro-bind", brought, target]
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
            lower = self._bring(item["lower"], f"m{number}", lease, mapped=True, writable=True)
            layer = self._layer(number, item["disk_mb"])
            self.arguments += ["--overlay-src", lower, "--overlay", f"{layer}/up", f"{layer}/work", target]

    def open_uppers(self) -> list[int]:
        return [open_folder(f"{layer}/up") for layer, _ in self.uppers]

    def open_controls(self) -> list[int]:
        return [open_folder(str(folder)) for folder in self.controls]

    def empty_layers(self) -> None:
        """The cost does not depend on what was in them."""
        for layer, megabytes in self.uppers:
            syscalls.unmount(str(layer))
            self._mount_layer(layer, megabytes)

    def clear(self) -> None:
        """Drop all mounts and files of the sandbox that has ended."""
        for target in [*(str(layer) for layer, _ in self.uppers), *reversed(self.mounted)]:
            with contextlib.suppress(OSError):
                syscalls.unmount(target)
        for path in self.place.iterdir() if self.arguments else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._forget()

    def _bring(self, source: str, name: str, lease: str, *, mapped: bool, writable: bool = False) -> str:
        """A path below `place` at which `source` appears as the sandbox's own files.

        `writable`: the sandbox will change it (in its layer), so its uid must own it."""
        target, info = self.place / name, Path(source).stat()
        target.mkdir(mode=0o755) if stat.S_ISDIR(info.st_mode) else target.touch(mode=0o644)
        self.mounted.append(str(target))
        if self.as_root and mapped and self._bind_mapped(source, str(target), info.st_uid):
            return str(target)
        if writable and info.st_uid != self.uid:
            self.notes.append(f"{source} was copied: its owner can't be mapped to the sandbox's uid here")
            source = self._copy(source, name, lease)
        syscalls.bind(source, str(target))
        return str(target)

    def _bind_mapped(self, source: str, target: str, owner: int) -> bool:
        """False where the kernel or the file system has no id-mapped mounts."""
        try:
            if owner not in self.maps:
                self.maps[owner] = syscalls.mapping_namespace(owner, self.uid)
            syscalls.bind_mapped(source, target, self.maps[owner])
        except OSError:
            return False
        return True

    def _copy(self, source: str, name: str, lease: str) -> str:
        """A copy in the lease folder that the sandbox's uid owns."""
        place = Path(lease, name)
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

    def resize_layers(self, *, spare: bool) -> None:
        """Room for an overlay to be mounted over a layer that the agent has filled, and back again once it is."""
        for layer, megabytes in self.uppers:
            now = os.statvfs(layer)
            inodes = max(4096 + megabytes * 256, now.f_files - now.f_ffree) + 64 * spare
            size = max(megabytes << 20, (now.f_blocks - now.f_bfree) * now.f_frsize) + (spare << 20)
            flags = syscalls.MS_REMOUNT | syscalls.MS_NOSUID | syscalls.MS_NODEV
            syscalls.mount(None, str(layer), None, flags, f"size={size},nr_inodes={inodes}")


def open_folder(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)


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
