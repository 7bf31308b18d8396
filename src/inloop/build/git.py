"""Git repositories read as data: bare clones, no hooks, no filters, no checkout, no configuration but ours."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inloop.errors import TaskError

MAX_FILE = 2 << 20
SAFE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_OPTIONAL_LOCKS": "0",
}
CONFIG = {"safe.directory": "*", "core.hooksPath": "/dev/null", "core.fsmonitor": "false", "gc.auto": "0"}


def is_git_source(spec: str) -> bool:
    """A URL, an scp-like address, or a folder that git made."""
    if re.match(r"(https?|git|ssh|file)://|[\w.-]+@[\w.-]+:", spec) or spec.endswith(".git"):
        return True
    bare = (Path(spec) / "objects").is_dir() and (Path(spec) / "refs").is_dir()
    return bare or (Path(spec) / ".git").exists()


@dataclass(frozen=True)
class Commit:
    sha: str
    parent: str
    changed: tuple[tuple[str, str], ...]
    """(status letter, path) against the parent."""


@dataclass(frozen=True)
class Repository:
    name: str
    folder: Path
    """A bare clone of ours."""

    @classmethod
    @contextlib.contextmanager
    def open(cls, spec: str) -> Iterator[Repository]:
        """Clone into a temporary folder that is gone afterwards. Raises TaskError with git's own words."""
        with tempfile.TemporaryDirectory(prefix="inloop-git-") as temporary:
            folder = Path(temporary) / "clone.git"
            source = str(Path(spec).resolve()) if Path(spec).exists() else spec
            run = git(None, "clone", "--bare", "--quiet", "--no-local", "--template=", "--", source, str(folder))
            if run.returncode:
                raise TaskError(f"git can't clone {spec}: {_last(run.stderr)}", fix="check the address and the network")
            yield cls(_name(spec), folder)

    def head(self) -> str:
        run = git(self.folder, "rev-parse", "--verify", "HEAD^{commit}")
        if run.returncode:
            raise TaskError(f"{self.name}: the repository has no commit", fix="commit something first")
        return run.stdout.decode().strip()

    def commit(self, name: str) -> str:
        """The full hash of a commit, branch or tag; '' when the repository has none of that name."""
        if not re.fullmatch(r"[A-Za-z0-9_][\w./+-]*", name):
            return ""
        run = git(self.folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return run.stdout.decode().strip() if run.returncode == 0 else ""

    def commit_at(self, branch: str, time: float) -> str:
        """The newest commit of a branch (HEAD for an unknown one) that is not younger than `time`; '' if all are."""
        start = self.commit(f"refs/heads/{branch}") if branch else ""
        run = git(self.folder, "rev-list", "-1", f"--until={int(time)}", start or "HEAD", "--")
        return run.stdout.decode().strip() if run.returncode == 0 else ""

    def files(self, commit: str) -> tuple[dict[str, bytes], list[tuple[str, str]]]:
        """Regular files of `commit`, straight from the object store: attributes and filters play no part."""
        skipped: list[tuple[str, str]] = []
        names: list[tuple[str, str]] = []
        for entry in self._out("ls-tree", "-r", "-l", "-z", commit).split(b"\0")[:-1]:
            meta, raw = entry.split(b"\t", 1)
            mode, _, blob, size = meta.split()
            name = raw.decode("utf-8", "surrogateescape")
            if mode not in (b"100644", b"100755"):
                skipped.append((name, "link or submodule"))
            elif int(size) > MAX_FILE or not name.isprintable():
                skipped.append((name, f"over {MAX_FILE >> 20} MB or an odd name"))
            else:
                names.append((name, blob.decode()))
        return dict(self._blobs(names)), skipped

    def _blobs(self, names: list[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
        asked = "".join(f"{blob}\n" for _, blob in names).encode()
        out, at = self._out("cat-file", "--batch", stdin=asked), 0
        for name, _ in names:
            end = out.index(b"\n", at)
            size = int(out[at:end].split()[2])
            yield name, out[end + 1 : end + 1 + size]
            at = end + 1 + size + 1

    def commits(self, limit: int) -> list[Commit]:
        """Newest first; merges and the root commit are left out."""
        out = self._out("log", f"-{limit}", "--no-merges", "--format=%x01%H %P", "--name-status", "-z", "--no-renames")
        commits = []
        for block in out.decode("utf-8", "surrogateescape").split("\x01")[1:]:
            head, _, rest = block.partition("\0")
            sha, _, parent = head.strip().partition(" ")
            fields = [f.strip("\n") for f in rest.split("\0") if f.strip("\n")]
            if parent:
                commits.append(Commit(sha, parent, tuple(zip(fields[::2], fields[1::2], strict=False))))
        return commits

    def _out(self, *args: str, stdin: bytes = b"") -> bytes:
        run = git(self.folder, *args, stdin=stdin)
        if run.returncode:
            raise TaskError(f"{self.name}: git {args[0]} failed: {_last(run.stderr)}")
        return run.stdout


def git(folder: Path | None, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git without the user's, the system's or the repository's hooks and prompts."""
    config = [word for key, item in CONFIG.items() for word in ("-c", f"{key}={item}")]
    pairs = {f"GIT_CONFIG_KEY_{i}": k for i, k in enumerate(CONFIG)}
    pairs |= {f"GIT_CONFIG_VALUE_{i}": v for i, v in enumerate(CONFIG.values())}
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | SAFE | pairs
    where = ["--git-dir", str(folder)] if folder else []
    return subprocess.run(
        ["git", *config, *where, *args],
        input=stdin,
        capture_output=True,
        env=env | {"GIT_CONFIG_COUNT": str(len(CONFIG))},
        timeout=600,
        check=False,
    )


def _name(spec: str) -> str:
    return Path(spec).resolve().name.removesuffix(".git") if Path(spec).exists() else spec.removesuffix(".git")


def _last(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no message"
