"""What a session did to its repository, told by the shape of its calls: edits, whole files, patches, commands.

Nothing is run here; the names of tools differ from agent to agent, the names of their arguments hardly do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from inloop.types import Call

_PATH = ("file_path", "path", "filePath", "filename", "file", "notebook_path")
_OLD = ("old_string", "old_str", "old", "oldString", "oldText")
_NEW = ("new_string", "new_str", "new", "newString", "newText")
_CONTENT = ("content", "file_text", "contents")
_COMMAND = ("command", "cmd", "script", "keystrokes")
_PATCH = ("input", "patch", "patchText")
_FOLDER = ("workdir", "cwd", "working_directory")
_VIEWS = {"view", "undo_edit"}
PATCH = re.compile(r"\*\*\* Begin Patch\n.*?\n\*\*\* End Patch", re.S)
FRESH_SHELL = {"codex", "opencode", "pi", "mini-swe-agent"}
"""Formats of agents that start each command in the session's folder; with the others the shell lives on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    kind: Literal["edit", "write", "insert", "patch", "run"]
    path: str = ""
    """As the agent wrote it."""
    old: str = ""
    text: str = ""
    """The new text, the whole content, the patch, or the command."""
    everywhere: bool = False
    line: int = 0
    """insert: after this line."""
    folder: str = ""
    """run: where, when the call says so."""

    def mapped(self, change: Callable[[str], str]) -> Step:
        """Every string changed."""
        return replace(
            self, path=change(self.path), old=change(self.old), text=change(self.text), folder=change(self.folder)
        )


def steps_of(call: Call) -> list[Step]:
    """In the order in which they happen; empty for a call that only looks."""
    given = call.arguments
    if not isinstance(given, Mapping):
        return []
    patch = next((v for k in _PATCH if isinstance(v := given.get(k), str) and "*** Begin Patch" in v), "")
    if patch:
        return [Step(kind="patch", text=m[0]) for m in PATCH.finditer(patch)]
    path = _text(given, _PATH)
    if path and call.name.lower() not in ("read", "view"):
        return list(_file_steps(given, path))
    return list(_commands(given))


def _file_steps(given: Mapping[str, Any], path: str) -> Iterator[Step]:
    if given.get("command") in _VIEWS:
        return
    if isinstance(given.get("edits"), list):
        for edit in given["edits"]:
            if isinstance(edit, Mapping):
                yield from _file_steps({k: v for k, v in edit.items() if k != "edits"}, path)
        return
    old, new, content = (_text(given, keys, None) for keys in (_OLD, _NEW, _CONTENT))
    line = given.get("insert_line")
    if isinstance(line, int) and new is not None:
        yield Step(kind="insert", path=path, text=new, line=line)
    elif old:
        yield Step(kind="edit", path=path, old=old, text=new or "", everywhere=_all(given))
    elif content is not None:
        yield Step(kind="write", path=path, text=content)
    elif old == "" and new is not None:  # Claude Code and opencode create a file by an edit of nothing
        yield Step(kind="write", path=path, text=new)


def _all(given: Mapping[str, Any]) -> bool:
    return bool(given.get("replace_all") or given.get("replaceAll"))


def _commands(given: Mapping[str, Any]) -> Iterator[Step]:
    command: Any = next((given[k] for k in _COMMAND if given.get(k)), None)
    if isinstance(command, list):
        words = [str(w) for w in command]
        wrapped = len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc")
        command = words[2] if wrapped else shlex.join(words)
    if not isinstance(command, str) or not command.strip():
        return
    if "apply_patch" in command and (patches := PATCH.findall(command)):
        yield from (Step(kind="patch", text=p) for p in patches)
        return
    yield Step(kind="run", text=command, folder=_text(given, _FOLDER) or "")


def _text(given: Mapping[str, Any], keys: tuple[str, ...], default: str | None = "") -> str | None:
    return next((given[k] for k in keys if isinstance(given.get(k), str)), default)


_TEST_COMMAND = re.compile(
    r"\b(pytest|py\.test|unittest|nosetests|tox|nox)\b|\bmake\s+(test|check)\b|\bmanage\.py\s+test\b"
)
_BAD = re.compile(
    r"\b[1-9]\d* (?:failed|errors?)\b|^FAILED\b|^Traceback |\berrors? during collection|no tests ran|"
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?:?|returncode>) ?[1-9]|command not found|No module named",
    re.M | re.I,
)


_ONLY_TESTS = re.compile(
    r"\s*(?:cd [^;&|<>$`]+ && )?(?:python3? -m )?(?:pytest|py\.test|unittest)\b[^;&|<>$`]*(?:2>&1 *)?"
    r"(?:\| *(?:tail|head|grep)\b[^;&|<>$`]*)?\s*"
)


def is_test_run(call: Call) -> bool:
    """The harness's test tool, or a command that starts a test runner."""
    return call.name in ("test", "run_tests") or bool(_TEST_COMMAND.search(_command(call)))


def only_tests(call: Call) -> bool:
    """A test run and nothing else: it changes no file, and need not be done again."""
    return bool(_ONLY_TESTS.fullmatch(_command(call)))


def _command(call: Call) -> str:
    return next((s.text for s in _commands(call.arguments or {})), "")


def looks_passed(result: str, *, is_error: bool) -> bool:
    """What the trace says of a test run; the sandbox decides later."""
    return not is_error and not _BAD.search(result)
