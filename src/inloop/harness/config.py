"""How the agent acts: one frozen config whose hash trajectories, checkpoints and results carry."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from inloop.config import from_dict as strict_from_dict
from inloop.errors import ConfigError

REVISION = 1
"""Of the prompts, the block format and the tools' observations: a change here changes every hash."""

TOOLS = ("bash", "read", "edit", "write", "test", "submit")
GUIDES = ("strategy", "files", "notes")
SENSORS = ("syntax", "ruff", "tests")
NOT_SEEN = ("temperature", "top_p", "wall_seconds")
"""Fields that change nothing in what the model reads: recorded, but outside the hash."""


@dataclass(frozen=True, kw_only=True)
class HarnessConfig:
    dialect: Literal["text", "native"] = "text"
    """text: fenced blocks, any model. native: the model's own chat template and call format."""
    tools: tuple[str, ...] = TOOLS
    guides: tuple[str, ...] = ("strategy",)
    """Text put in front of the agent: 'strategy', 'files' (what the workspace holds), 'notes' (AGENTS.md)."""
    guide_text: str = ""
    """More text for the system message, after the guides."""
    sensors: tuple[str, ...] = ()
    """What is run after an edit and added to its observation: 'syntax', 'ruff', 'tests'."""
    thinking: bool = False
    """native: let a template that can switch it think."""
    max_turns: int = 20
    max_turn_tokens: int = 512
    max_tokens: int = 8192
    """Sampled tokens of the whole episode."""
    max_context: int = 0
    """Tokens of prompt and answer together; 0 is what the engine holds."""
    wall_seconds: float = 600.0
    """Of the whole episode; the task's own limit holds where it is lower."""
    observation_chars: int = 4000
    """One observation is clipped to this, head and tail."""
    test_output: Literal["summary", "full"] = "summary"
    """summary: only pytest's line for each failing test and its count, where it printed them."""
    max_invalid: int = 4
    """Turns in a row without a call that can be run; the next one ends the episode as an agent error."""
    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        for name, known in (("tools", TOOLS), ("guides", GUIDES), ("sensors", SENSORS)):
            _names(name, getattr(self, name), known)
        if "submit" not in self.tools:
            raise ConfigError("harness.tools has no 'submit'", fix="add it: an episode has to be able to end")
        for name in ("max_turns", "max_turn_tokens", "max_tokens", "wall_seconds"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"harness.{name} = {getattr(self, name)}", fix="give a number above 0")
        if self.max_invalid < 0:
            raise ConfigError(f"harness.max_invalid = {self.max_invalid}", fix="give 0 or more")
        if self.observation_chars < 100:
            raise ConfigError(f"harness.observation_chars = {self.observation_chars}", fix="at least 100")
        if self.temperature < 0 or not 0 < self.top_p <= 1:
            raise ConfigError("harness.temperature must be >= 0 and harness.top_p in (0, 1]")

    def hash(self) -> str:
        """12 hex digits over all that shapes what the model sees and may do."""
        seen = {k: v for k, v in self.to_dict().items() if k not in NOT_SEEN}
        text = json.dumps([REVISION, seen], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def record(self) -> dict[str, Any]:
        """What a trajectory or a checkpoint keeps: the resolved config and its hash."""
        return {**self.to_dict(), "hash": self.hash(), "revision": REVISION}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HarnessConfig:
        """Strict: an unknown key or a value of the wrong type is a ConfigError. Reads `record()` back too."""
        config = strict_from_dict(cls, {k: v for k, v in data.items() if k not in ("hash", "revision")})
        if "hash" in data and data.get("revision") == REVISION and data["hash"] != config.hash():
            raise ConfigError(f"harness: hash {data['hash']} is not that of the config beside it ({config.hash()})")
        return config


def _names(name: str, values: tuple[str, ...], known: tuple[str, ...]) -> None:
    for value in values:
        if value not in known:
            raise ConfigError(f"harness.{name}: unknown {value!r}", fix=f"known: {', '.join(known)}")
    if len(set(values)) != len(values):
        raise ConfigError(f"harness.{name}: a name is given twice")
