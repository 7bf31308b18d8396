"""The words that every stage shares: messages and their parts, rewards, stop reasons. Imports nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    text: str
    hidden: bool = False
    """The model thought, but the trace does not hold what (a signature alone, encrypted content)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    sha256: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    id: str
    name: str
    arguments: dict[str, Any] | None
    """None when `raw` does not parse."""
    raw: str
    """Exactly what the model wrote as arguments."""
    embedded: bool = False
    """The call stands inside the text (a fenced action, `<function=...>`, a JSON command): `raw` is its whole
    block, part of `Message.text`, and no template renders it again."""


Part = Text | Thinking | Image | Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    parts: tuple[Part, ...]
    call_id: str | None = None
    """The call that the message answers; of a user message too, where the harness speaks in text."""
    is_error: bool = False
    origin: str | None = None
    """Who wrote it when not its role: 'harness', 'compaction', 'demo', ..."""

    @property
    def text(self) -> str:
        """What is rendered as content: the texts, and the calls that are embedded in them."""
        said = (
            p.text if isinstance(p, Text) else p.raw if isinstance(p, Call) and p.embedded else "" for p in self.parts
        )
        return "".join(said)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that a template renders as calls."""
        return tuple(p for p in self.parts if isinstance(p, Call) and not p.embedded)

    @property
    def all_calls(self) -> tuple[Call, ...]:
        """Embedded ones as well."""
        return tuple(p for p in self.parts if isinstance(p, Call))


def message(role: Role, text: str, **kw: Any) -> Message:
    """A message of one text part."""
    return Message(role=role, parts=(Text(text=text),), **kw)


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    CHEAT = "cheat"
    """A canary twin passed or the checker was tampered with: pays nothing and is flagged."""
    TIMEOUT = "timeout"
    FAULT = "fault"
    """The host has evidence that the infrastructure failed: `Reward.value` is None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOutcome:
    __test__ = False  # not a pytest class
    id: str
    status: Literal["passed", "failed", "skipped", "error", "missing", "timeout"]
    cpu_seconds: float = 0.0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    value: float | None
    """In [0, 1], all-or-nothing; None could not be scored and never counts as 0."""
    verdict: Verdict
    fraction: float | None = None
    """Share of the expected hidden tests that passed; 0 for a cheat, None for a fault."""
    parts: dict[str, float] = field(default_factory=dict)
    """Named shaping terms, never part of `value`."""
    tests: tuple[TestOutcome, ...] = ()
    evidence: tuple[str, ...] = ()
    mode: str = ""
    """Which verifier judged: 'split', 'forked' or 'command' (weaker)."""
    seconds: float = 0.0


class StopReason(StrEnum):
    SUBMITTED = "submitted"
    TURN_LIMIT = "turn_limit"
    TOKEN_LIMIT = "token_limit"
    DEADLINE = "deadline"
    CONTEXT_FULL = "context_full"
    AGENT_ERROR = "agent_error"
    """The agent itself crashed or gave nothing that can be acted on, too often."""
    CANCELLED = "cancelled"
    SANDBOX_FAULT = "sandbox_fault"
    ENGINE_FAULT = "engine_fault"
    VERIFIER_FAULT = "verifier_fault"

    @property
    def is_fault(self) -> bool:
        """The infrastructure failed: out of the group, out of every rate."""
        return self.value.endswith("_fault")

    @property
    def trains(self) -> bool:
        return not self.is_fault and self is not StopReason.CANCELLED
