"""What goes over the wire: one action type for all tools, one observation type, the state."""

from __future__ import annotations

from typing import Any, Literal

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field

Tool = Literal["bash", "read", "edit", "write", "test", "submit"]


class InloopAction(Action):  # type: ignore[misc]
    """One tool call; a field that the tool does not take, or one that is missing, is told in the observation."""

    tool: Tool = Field(description="bash, read, edit, write, test or submit")
    command: str | None = Field(default=None, description="bash: the command")
    path: str | None = Field(default=None, description="read, edit, write: the file")
    start: int | None = Field(default=None, description="read: first line")
    end: int | None = Field(default=None, description="read: last line")
    old: str | None = Field(default=None, description="edit: text that occurs exactly once in the file")
    new: str | None = Field(default=None, description="edit: its new text")
    content: str | None = Field(default=None, description="write: the whole content")
    timeout_s: float | None = Field(default=None, gt=0, description="seconds, below the budget of a command")

    def arguments(self) -> dict[str, Any]:
        given: dict[str, Any] = self.model_dump(exclude={"tool", "timeout_s", "metadata"}, exclude_none=True)
        return given


class InloopObservation(Observation):  # type: ignore[misc]
    """`metadata` of a finished episode: verdict, fraction, unscorable, mode, seconds."""

    text: str = Field(default="", description="after reset the task's instruction, after a step what the tool said")
    is_error: bool = False
    stop: str = Field(default="", description="why the episode is over: submitted, turn_limit, deadline, ..._fault")
    task_id: str = Field(default="", description="after reset")
    tools: list[dict[str, Any]] = Field(default_factory=list, description="after reset: the tools' schemas")
    budget: dict[str, float] = Field(
        default_factory=dict,
        description="after reset: episode_seconds, command_seconds, verify_seconds, steps, output_chars, message_bytes",
    )


class InloopState(State):  # type: ignore[misc]
    task_id: str = ""
    split: str = ""
    done: bool = False
    stop: str = ""
    reward: float | None = Field(default=None, description="of a finished episode; null when it could not be scored")
    seconds_left: float = 0.0
