"""What the agent can do. A failure is an observation, never an exception; only a broken sandbox raises."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from inloop.harness.clip import clip, is_binary, printable, summarize_tests
from inloop.harness.config import HarnessConfig
from inloop.sandbox.base import CommandResult, Sandbox
from inloop.tasks.task import Task

Schema = dict[str, Any]
NEAR_CHARS = 200
"""Longer lines are never compared when text is not found."""


def _schema(name: str, description: str, required: int, **parameters: str) -> Schema:
    """An OpenAI-style function schema; the first `required` parameters are."""
    kinds = {"start": "integer", "end": "integer"}
    properties = {k: {"type": kinds.get(k, "string"), "description": v} for k, v in parameters.items()}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(parameters)[:required],
            },
        },
    }


SCHEMAS: dict[str, Schema] = {
    "bash": _schema("bash", "Run a command in bash.", 1, command="the command"),
    "read": _schema("read", "Show a file.", 1, path="the file", start="first line", end="last line"),
    "edit": _schema(
        "edit",
        "Replace text that occurs exactly once in a file.",
        3,
        path="the file",
        old="the text",
        new="its new text",
    ),
    "write": _schema("write", "Create or overwrite a file.", 2, path="the file", content="its whole content"),
    "test": _schema("test", "Run the visible tests.", 0),
    "submit": _schema("submit", "Hand in the work and end.", 0),
}


def schemas(names: tuple[str, ...]) -> list[Schema]:
    return [SCHEMAS[n] for n in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    text: str
    is_error: bool = False
    valid: bool = True
    """False: the call itself could not be understood."""
    kind: str = "tools"
    """Which timing it belongs to: 'tools' or 'tests'."""
    edited: str = ""
    """The file that it changed."""
    tests_failed: bool = False
    submitted: bool = False


@dataclass
class Toolbox:
    """The tools of one episode, bound to its sandbox."""

    task: Task
    sandbox: Sandbox
    config: HarnessConfig
    remaining: Callable[[], float] = lambda: float("inf")
    """Seconds that the episode has left: caps every command."""
    usage: Callable[[str], str] = lambda name: usage(name)
    """How a tool is called in the dialect at hand."""
    _tools: dict[str, Callable[..., Observation]] = field(init=False)

    def __post_init__(self) -> None:
        self._tools = {n: self.test if n == "test" else getattr(self, f"_{n}") for n in self.config.tools}

    def call(self, name: str, arguments: dict[str, Any] | None) -> Observation:
        """Run one call. Raises SandboxFault alone."""
        if name not in self._tools:
            return _invalid(f"no tool {name!r}; there are: {', '.join(self._tools)}")
        if arguments is None:
            return _invalid(f"this {name} can't be read; {self.usage(name)}")
        if wrong := _mismatch(name, arguments):
            return _invalid(f"{wrong}; {self.usage(name)}")
        if "path" in arguments:
            arguments = {**arguments, "path": self._relative(arguments["path"])}
        try:
            return self._tools[name](**arguments)
        except (FileNotFoundError, NotADirectoryError):
            return _error(f"no file {arguments.get('path')}")
        except IsADirectoryError:
            return _error(f"{arguments.get('path')} is a folder")
        except UnicodeEncodeError:
            return _error(f"{name} failed: a lone surrogate is no text")
        except ValueError as error:
            return _error(f"{name} failed: {error}")
        except OSError as error:
            return _error(f"{name} failed: {error.strerror or error}")

    def _relative(self, path: str) -> str:
        """Agents name files both ways: /workspace/a.py is a.py."""
        plain = str(PurePosixPath(path.strip() or "."))
        return plain.removeprefix(self.sandbox.workdir.rstrip("/") + "/")

    def run(self, command: str) -> CommandResult:
        """A command under the limit of a command and of what the episode has left."""
        return self.sandbox.run(command, timeout=max(0.1, min(self._command_seconds, self.remaining())))

    @property
    def _command_seconds(self) -> float:
        return self.task.limits.command_seconds

    def _bash(self, command: str) -> Observation:
        result = self.run(command)
        return Observation(text=self._clip(_shown(result)), is_error=not result.ok)

    def _read(self, path: str, start: int = 0, end: int = 0) -> Observation:
        data = self.sandbox.read(path)
        if is_binary(data):
            return _error(f"{path} is binary, {len(data)} bytes")
        text = data.decode("utf-8", "replace")
        if start or end:
            lines = text.splitlines(keepends=True)
            text = "".join(lines[max(start - 1, 0) : end or None])
            if not text:
                return _error(f"{path} has {len(lines)} lines")
        return Observation(text=self._clip(printable(text.removesuffix("\n"))) or "(empty file)")

    def _edit(self, path: str, old: str, new: str) -> Observation:
        data = self.sandbox.read(path)
        if is_binary(data):
            return _error(f"{path} is binary")
        text = data.decode("utf-8", "surrogateescape")
        changed = replace_once(text, old, new)
        if changed.error:
            return _error(f"{changed.error} {path}{changed.hint}")
        self.sandbox.write(path, changed.text.encode("utf-8", "surrogateescape"))
        return Observation(text="ok", edited=path)

    def _write(self, path: str, content: str) -> Observation:
        self.sandbox.write(path, content.encode("utf-8", "replace"))
        return Observation(text="ok", edited=path)

    def test(self) -> Observation:
        """The visible tests, whether or not the agent has the tool."""
        result = self.run(self.task.test_command)
        text = _shown(result, code=result.exit_code != 1)  # 1 is what failing tests end with: their words say more
        if self.config.test_output == "summary":
            text = summarize_tests(text, result.ok)
        return Observation(text=self._clip(text), is_error=not result.ok, kind="tests", tests_failed=not result.ok)

    def _submit(self) -> Observation:
        return Observation(text="submitted", submitted=True)

    def _clip(self, text: str) -> str:
        return clip(text, self.config.observation_chars)


@dataclass(frozen=True, slots=True)
class Replaced:
    text: str = ""
    error: str = ""
    hint: str = ""


def replace_once(text: str, old: str, new: str) -> Replaced:
    """Exact search and replace; lines that are replaced by nothing go with their line end."""
    if not old:
        return Replaced(error="nothing to look for in")
    if old == new:
        return Replaced(error="old and new are the same, nothing changed in")
    count = text.count(old)
    if count > 1:
        return Replaced(error=f"{count} places match in", hint="; add lines around it")
    if not count:
        return Replaced(error="no such text in", hint=_nearest(text, old))
    at = text.index(old)
    end = at + len(old)
    whole_lines = (at == 0 or text[at - 1] == "\n") and text[end : end + 1] == "\n"
    if not new and whole_lines:
        end += 1
    return Replaced(text=text[:at] + new + text[end:])


def _nearest(text: str, old: str) -> str:
    wanted = next((line for line in old.splitlines() if line.strip()), "")[:NEAR_CHARS]
    lines = [line for line in text.splitlines()[:5000] if len(line) <= NEAR_CHARS]  # the search is quadratic
    near = difflib.get_close_matches(wanted, lines, n=1, cutoff=0.6)
    return f"; nearest line:\n{printable(near[0])}" if near and near[0] != wanted else ""


def _shown(result: CommandResult, *, code: bool = True) -> str:
    """Both streams as the agent reads them, with what went wrong in front."""
    streams = [printable(s.rstrip("\n")) for s in (result.stdout, result.stderr) if s.strip()]
    head = []
    if result.limit and not result.ok:
        head = [f"stopped: over the {result.limit} limit"]
    elif not result.ok and (code or not streams):
        head = [f"exit {result.exit_code}"]
    return "\n".join(head + streams) or "(no output)"


def usage(name: str) -> str:
    spec = SCHEMAS[name]["function"]["parameters"]
    return f"{name} takes {', '.join(spec['properties']) or 'nothing'}"


def _mismatch(name: str, arguments: dict[str, Any]) -> str:
    spec = SCHEMAS[name]["function"]["parameters"]
    for key in spec["required"]:
        if key not in arguments:
            return f"{key} is missing"
    for key, value in arguments.items():
        if key not in spec["properties"]:
            return f"{name} has no {key!r}"
        whole = spec["properties"][key]["type"] == "integer"
        if type(value) is not (int if whole else str):
            return f"{key} must be {'a whole number' if whole else 'text'}"
        if "\0" in str(value):
            return f"{key} holds a NUL character"
    return ""


def _invalid(text: str) -> Observation:
    return Observation(text=f"error: {text}", is_error=True, valid=False)


def _error(text: str) -> Observation:
    return Observation(text=f"error: {text}", is_error=True)
