"""Is the answer, or a hidden test, somewhere that the agent can read? Searched by text, never by running anything."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from inloop.build.git import git
from inloop.build.patch import changed_lines
from inloop.build.testsplit import TestFile, function_of
from inloop.sandbox.base import Diff
from inloop.sandbox.installed import copies
from inloop.tasks.task import Task
from inloop.verify.place import site_folders

MIN_CHARACTERS = 60
"""Of code without blanks: a shorter piece is no evidence, it may stand anywhere."""
CONTEXT = 3
MAX_FILE = 4 << 20
VCS = (".git", ".hg", ".svn", ".bzr")


def leaks(task: Task, oracle: Diff) -> list[str]:
    """Where the answer or a hidden test can be read; empty is good."""
    files = dict(_workspace(task.workspace))
    secrets = {f"the answer to {p}": s for p in oracle.changed for s in answer_pieces(task, oracle, p)}
    secrets |= dict(_hidden_tests(task))
    found = [f"{what} is in {where}" for where, text in files.items() for what, s in secrets.items() if s in text]
    found += [f"{what} is in the git history" for what in _in_history(task.workspace, secrets)]
    return found + [f"{p} is in the workspace" for p in _foreign_vcs(task.workspace)]


def squeezed(text: str) -> str:
    """Without blanks and line ends: copies are found whatever their indentation."""
    return re.sub(r"\s+", "", text)


def answer_pieces(task: Task, oracle: Diff, path: str) -> Iterator[str]:
    """The functions that the fix changes, as they are afterwards; for other files, the changed region with context."""
    after = oracle.changed[path].decode("utf-8", "replace")
    broken = task.workspace / path
    before = broken.read_text("utf-8", "replace") if broken.is_file() else ""
    old = set(_functions(before))
    pieces = [f for f in _functions(after) if f not in old] or list(_regions(before, after))
    for piece in pieces:
        if len(text := squeezed(piece)) >= MIN_CHARACTERS and text not in squeezed(before):
            yield text


def _functions(text: str) -> list[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = text.split("\n")
    return ["\n".join(lines[n.lineno - 1 : n.end_lineno]) for n in nodes]


def _regions(before: str, after: str) -> Iterator[str]:
    old = set(before.splitlines())
    lines = after.splitlines()
    new = [i for i, line in enumerate(lines) if line not in old]
    for i in new:
        yield "\n".join(lines[max(0, i - CONTEXT) : i + CONTEXT + 1])


def _workspace(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE and parts[0] not in VCS:
            yield "/".join(parts), squeezed(path.read_text("utf-8", "replace"))


def _hidden_tests(task: Task) -> Iterator[tuple[str, str]]:
    for name in task.verify.tests:
        try:
            file = TestFile(name, (task.tests / name).read_bytes())
        except (OSError, SyntaxError):
            continue
        wanted = {function_of(i).partition("::")[2] for i in task.verify.expected if i.startswith(f"{name}::")}
        for function in sorted(wanted & set(file.functions)):
            if len(text := squeezed(file.source(function))) >= MIN_CHARACTERS:
                yield f"the hidden test {function}", text


def _in_history(workspace: Path, secrets: Mapping[str, str]) -> list[str]:
    """Every object of a `.git` in the workspace is searched, unreachable ones too."""
    folder = workspace / ".git"
    if not folder.is_dir() or not secrets:
        return []
    listing = git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
    rows = [line.split() for line in listing.stdout.decode("ascii", "replace").splitlines()]
    blobs = [r[0] for r in rows if len(r) == 3 and r[1] == "blob" and int(r[2]) <= MAX_FILE]
    content = git(folder, "cat-file", "--batch", stdin="".join(f"{b}\n" for b in blobs).encode()).stdout
    text = squeezed(content.decode("utf-8", "replace"))
    return [what for what, secret in secrets.items() if secret in text]


def _foreign_vcs(workspace: Path) -> list[str]:
    """Histories that can't be searched here."""
    return [name for name in VCS[1:] if (workspace / name).exists()]


def installed_copies(task: Task, oracle: Diff) -> list[str]:
    """Installed packages, visible to every sandbox, that hold the answer and that the sandbox does not hide."""
    hidden = {str(p) for p in copies(task.workspace)}
    out = []
    for path in oracle.changed:
        secrets = list(answer_pieces(task, oracle, path))
        for root in task.verify.python_path:
            relative = _below(path, root)
            for site in site_folders() if relative else ():
                copy = Path(site, relative)
                top = str(Path(site, PurePosixPath(relative).parts[0]))
                if top not in hidden and copy.is_file() and any(s in _text(str(copy)) for s in secrets):
                    out.append(f"the answer is in the installed {relative}")
    return out


def _below(path: str, root: str) -> str:
    pure = PurePosixPath(path)
    if root in (".", ""):
        return path
    return pure.relative_to(root).as_posix() if pure.is_relative_to(root) else ""


@cache
def _text(path: str) -> str:
    return squeezed(Path(path).read_text("utf-8", "replace"))


def instruction_faults(task: Task) -> list[str]:
    """An instruction must say something, and neither the fix nor the line."""
    text = task.instruction
    out = [] if len(text.split()) >= 5 else ["the instruction is empty"]
    patch = task.solution / "patch.diff"
    added = changed_lines(patch.read_text("utf-8", "replace"))[1] if patch.is_file() else []
    squeezed_text = squeezed(text)
    told = [line.strip() for line in added if len(squeezed(line)) >= 16 and squeezed(line) in squeezed_text]
    out += [f"the instruction holds a line of the fix: {told[0][:60]}"] if told else []
    if re.search(r"^(@@ -|\+\+\+ |--- a/)", text, re.M):
        out.append("the instruction holds a patch")
    if re.search(r"\b[\w/]+\.py(:|\", line )\d+", text):
        out.append("the instruction names a line of a file")
    return out
