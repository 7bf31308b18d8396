"""For TRL's `environment_factory=`: a class whose public methods are the model's tools, one episode at a time."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cache
from typing import Any

from inloop.env.client import InloopEnv, SessionLost, score
from inloop.env.models import InloopAction
from inloop.errors import InloopError
from inloop.harness.config import TOOLS as TOOL_NAMES


class EpisodeOver(Exception):
    """TRL shows the text to the model as the tool's error."""


class _Episode:
    """What is no tool has an underscore: TRL offers every other method to the model, but reset and get_reward."""

    def __init__(self, url: str, token: str | None, wait_s: float) -> None:
        self._client = InloopEnv(url, token=token, wait_s=wait_s).sync()
        self._open = self._done = False
        self._reward: float | None = None
        # TRL pools these objects and never closes them
        self._finalizer = weakref.finalize(self, self._client.close)

    def reset(self, **row: Any) -> str:
        """The task of a dataset row: its `task_id`, or its `split` and `index`; the instruction goes to the prompt."""
        which = {k: row[k] for k in ("task_id", "split", "index") if row.get(k) is not None}
        if not which:
            raise InloopError("a row names no task", fix="give the dataset a column `task_id`, or `split` and `index`")
        if "task_id" in which:
            which = {"task_id": which["task_id"]}
        started = self._client.reset(**which)
        self._open, self._done, self._reward = True, False, None
        text: str = started.observation.text
        return text

    def get_reward(self) -> float | None:
        """Submits where the model did not. None where nothing can be said: TRL then leaves the sample out."""
        if self._open and not self._done:
            try:
                self._step("submit")
            except (SessionLost, EpisodeOver):
                self._reward = None
        return self._reward

    def _step(self, tool: str, **arguments: Any) -> str:
        if self._done or not self._open:
            raise EpisodeOver("the episode is over")
        try:
            result = self._client.step(InloopAction(tool=tool, **arguments))
        except SessionLost:
            self._done, self._reward = True, None
            raise
        if result.done:
            self._done, self._reward = True, score(result)
        text: str = result.observation.text
        return text


class _Bash(_Episode):
    def bash(self, command: str) -> str:
        """Run a command in bash.

        Args:
            command: The command.

        Returns:
            Its output.
        """
        return self._step("bash", command=command)


class _Read(_Episode):
    def read(self, path: str, start: int = 0, end: int = 0) -> str:
        """Show a file.

        Args:
            path: The file.
            start: First line; 0 is the first of the file.
            end: Last line; 0 is the last of the file.

        Returns:
            Its text.
        """
        return self._step("read", path=path, start=start, end=end)


class _Edit(_Episode):
    def edit(self, path: str, old: str, new: str) -> str:
        """Replace text that occurs exactly once in a file.

        Args:
            path: The file.
            old: The text.
            new: Its new text.

        Returns:
            Whether it worked.
        """
        return self._step("edit", path=path, old=old, new=new)


class _Write(_Episode):
    def write(self, path: str, content: str) -> str:
        """Create or overwrite a file.

        Args:
            path: The file.
            content: Its whole content.

        Returns:
            Whether it worked.
        """
        return self._step("write", path=path, content=content)


class _Test(_Episode):
    def test(self) -> str:
        """Run the visible tests.

        Returns:
            What they said.
        """
        return self._step("test")


class _Submit(_Episode):
    def submit(self) -> str:
        """Hand in the work and end.

        Returns:
            A receipt.
        """
        return self._step("submit")


TOOLS: dict[str, type[_Episode]] = {
    "bash": _Bash, "read": _Read, "edit": _Edit, "write": _Write, "test": _Test, "submit": _Submit,
}  # fmt: skip
"""One class a tool, so that a class with some of them can be put together."""


@cache
def _tools_class(names: tuple[str, ...]) -> type[_Episode]:
    """Its name is that of TRL's reward column."""
    return type("InloopTools", tuple(TOOLS[name] for name in names), {})


@dataclass(frozen=True, kw_only=True)
class EnvironmentFactory:
    """`GRPOTrainer(environment_factory=EnvironmentFactory(url=...))`; picklable. The server needs a session for each
    rollout that TRL has alive in each process."""

    url: str
    token: str | None = None
    tools: tuple[str, ...] = TOOL_NAMES
    wait_s: float = 60.0
    """How long a reset waits for a free session."""

    def __call__(self) -> _Episode:
        return _tools_class(self.tools)(self.url, self.token, self.wait_s)


def rows(url: str, split: str, *, token: str | None = None, head: str = "") -> list[dict[str, Any]]:
    """A dataset for TRL: prompt and `task_id` of each task of a split. With `environment_factory` the instruction is
    added by `reset`; `prompt` holds `head` and, in the message itself, the task's id for harness sessions."""
    found = InloopEnv(url, token=token).tasks(split)
    return [
        {"prompt": [{"role": "user", "content": head, "task_id": task["id"]}], "task_id": task["id"]} for task in found
    ]
