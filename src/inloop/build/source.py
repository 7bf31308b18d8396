"""Where tasks come from: a folder, a git repository or `pypi:NAME[==VERSION]`, read without running any of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from inloop.build.git import Repository, is_git_source
from inloop.build.sdist import fetch_sdist, unpack
from inloop.errors import TaskError

MAX_FILE = 2 << 20
MAX_TREE = 64 << 20
SKIP_FOLDERS = {
    ".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "node_modules", ".tox", ".nox", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", "build", "dist", ".eggs", ".idea", ".vscode",
}  # fmt: skip
NOT_PRODUCT = {"tests", "test", "testing", "docs", "doc", "examples", "example", "benchmarks", "bench", "scripts",
               "tools", "asv_bench", ".github"}  # fmt: skip
NATIVE_BACKENDS = ("maturin", "mesonpy", "scikit_build_core", "setuptools_rust", "skbuild", "poetry_dynamic_c")
NATIVE_FILES = (".pyx", ".pxd", ".c", ".cpp", ".cc", ".rs", ".f90")


@dataclass(frozen=True)
class Tree:
    """The files of one version of a repository, in memory."""

    name: str
    """'pypi:toolz', a URL, or a folder's name: without the version, so that a unit keeps its name."""
    version: str
    """Version or commit; '' for a plain folder."""
    files: dict[str, bytes] = field(repr=False)
    licence: str = ""
    skipped: tuple[tuple[str, str], ...] = ()
    """(path, why) of what was left out: links, files over 2 MB, odd names."""

    @property
    def test_files(self) -> tuple[str, ...]:
        return tuple(sorted(p for p in self.files if is_test_file(p)))

    @property
    def product_files(self) -> tuple[str, ...]:
        return tuple(sorted(p for p in self.files if is_product(p)))

    @property
    def python_path(self) -> tuple[str, ...]:
        """Folders that make the product importable: `src` or `lib` when they hold packages, and the root."""
        found = [d for d in ("src", "lib") if any(self._importable(d))]
        return (*found, ".")

    def _importable(self, folder: str) -> Iterable[str]:
        parts = (PurePosixPath(p).parts for p in self.product_files)
        return (p[1] for p in parts if p[0] == folder and len(p) >= 2 and (len(p) == 2 or "." not in p[1]))

    @property
    def native(self) -> str:
        """Why the product may need a native build; '' when nothing says so."""
        backend = str(self.project.get("build-system", {}).get("build-backend", ""))
        if backend.split(".")[0] in NATIVE_BACKENDS:
            return f"build backend {backend}"
        sources = self.product_like(NATIVE_FILES)
        if sources:
            return f"native source {sources[0]}"
        setup = self.files.get("setup.py", b"")
        return "setup.py has ext_modules" if b"ext_modules" in setup else ""

    def product_like(self, endings: tuple[str, ...]) -> list[str]:
        return sorted(p for p in self.files if p.endswith(endings) and not NOT_PRODUCT & set(PurePosixPath(p).parts))

    @property
    def project(self) -> dict[str, Any]:
        """pyproject.toml, read as data; empty when there is none or it does not parse."""
        try:
            return tomllib.loads(self.files.get("pyproject.toml", b"").decode())
        except ValueError:
            return {}


def is_test_file(path: str) -> bool:
    name = PurePosixPath(path).name
    return bool(re.fullmatch(r"test_.*\.py|.*_test\.py|tests?\.py", name)) and "docs" not in PurePosixPath(path).parts


def is_product(path: str) -> bool:
    pure = PurePosixPath(path)
    if pure.suffix != ".py" or is_test_file(path) or pure.name in ("setup.py", "conftest.py", "noxfile.py", "tasks.py"):
        return False
    return not NOT_PRODUCT & set(pure.parts[:-1])


def open_source(spec: str, *, cache: Path | None = None) -> Tree:
    """The tree that `spec` names: 'pypi:NAME[==VERSION]', a git URL or repository, or a folder.

    Raises TaskError when it can't be had; nothing of it is executed."""
    if spec.startswith("pypi:"):
        archive = fetch_sdist(spec.removeprefix("pypi:"), cache=cache)
        files, skipped = unpack(archive.path)
        name = f"pypi:{archive.name}"
        return _checked(Tree(name, archive.version, files, licence_of(files), tuple(skipped)))
    if is_git_source(spec):
        with Repository.open(spec) as repository:
            commit = repository.head()
            files, skipped = repository.files(commit)
            return _checked(Tree(repository.name, commit, files, licence_of(files), tuple(skipped)))
    return _checked(_folder(Path(spec)))


def _folder(root: Path) -> Tree:
    if not root.is_dir():
        raise TaskError(
            f"{root}: no such folder", fix="give a folder, a git repository, a git URL or pypi:NAME[==VERSION]"
        )
    files: dict[str, bytes] = {}
    skipped: list[tuple[str, str]] = []
    for path in _walk(root):
        name = path.relative_to(root).as_posix()
        if path.is_symlink() or not path.is_file():
            skipped.append((name, "link or device"))
        elif path.stat().st_size > MAX_FILE:
            skipped.append((name, f"over {MAX_FILE >> 20} MB"))
        else:
            files[name] = path.read_bytes()
    return Tree(root.resolve().name, "", files, licence_of(files), tuple(skipped))


def _walk(folder: Path) -> Iterable[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            if path.name not in SKIP_FOLDERS and not path.name.endswith(".egg-info"):
                yield from _walk(path)
        elif not path.name.endswith((".pyc", ".pyo")):
            yield path


def _checked(tree: Tree) -> Tree:
    size = sum(len(data) for data in tree.files.values())
    if size > MAX_TREE:
        raise TaskError(f"{tree.name}: {size >> 20} MB of files; {MAX_TREE >> 20} MB at most", fix="use a smaller part")
    if not any(p.endswith(".py") for p in tree.files):
        raise TaskError(f"{tree.name}: no Python files in it", fix="the builders mutate Python; import other tasks")
    return tree


def with_metadata(tree: Tree) -> Tree:
    """Add a `.dist-info` beside the package, so that `importlib.metadata.version` works without an installation."""
    if any(".dist-info/" in p or p.endswith(".egg-info/PKG-INFO") for p in tree.files):
        return tree
    project = tree.project.get("project", {})
    name = str(project.get("name") or tree.name.removeprefix("pypi:").rsplit("/", 1)[-1])
    version = tree.version if tree.name.startswith("pypi:") else str(project.get("version") or "0")
    stem = f"{re.sub(r'[-_.]+', '_', name)}-{version}.dist-info"
    folder = "" if tree.python_path[0] == "." else f"{tree.python_path[0]}/"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    files = tree.files | {f"{folder}{stem}/METADATA": metadata}
    return Tree(tree.name, tree.version, files, tree.licence, tree.skipped)


LICENCES = (
    (r"Apache License,?\s+Version 2", "Apache-2.0"),
    (r"GNU AFFERO", "AGPL"),
    (r"GNU LESSER", "LGPL"),
    (r"GNU GENERAL PUBLIC LICENSE", "GPL"),
    (r"Mozilla Public License", "MPL-2.0"),
    (r"Permission is hereby granted, free of charge", "MIT"),
    (r"Redistribution and use in source and binary forms", "BSD"),
    (r"PYTHON SOFTWARE FOUNDATION LICENSE", "PSF"),
)


def licence_of(files: dict[str, bytes]) -> str:
    """SPDX-like name from the metadata or the licence file; '' when neither says."""
    info = files.get("PKG-INFO", b"").decode("utf-8", "replace").split("\n\n")[0]
    for key in ("License-Expression", "License"):
        if (match := re.search(rf"^{key}: (.{{1,40}})$", info, re.M)) and match[1] != "UNKNOWN":
            return match[1].strip()
    for path in sorted(files):
        if re.match(r"(licen[cs]e|copying)", path, re.I):
            text = files[path].decode("utf-8", "replace")
            return next((name for pattern, name in LICENCES if re.search(pattern, text, re.I)), "")
    return ""
