"""What a continual loop is told: which sessions it watches, what it trains, and by which tasks it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from inloop.config import load
from inloop.data.pipeline import BuildConfig
from inloop.evaluate.run import EvalSettings
from inloop.harness.config import HarnessConfig
from inloop.tasks.taskset import Filter
from inloop.train.sft_settings import SFTSettings


@dataclass(frozen=True, kw_only=True)
class Watch:
    paths: tuple[str, ...]
    """Folders, files or globs of sessions, in any format that `inloop traces import` reads."""
    quiet_seconds: float = 300.0
    """A file that was written to since is left for later: its session may still go on."""
    poll_seconds: float = 60.0
    salt: str = ""
    """File that keeps placeholders stable; '' is your own."""


@dataclass(frozen=True, kw_only=True)
class SessionTasks:
    repo: str = ""
    """The git repository that the sessions were held in, or its URL; '' builds no tasks, and verifies nothing."""
    commit: str = ""
    """Where sessions began that recorded no commit."""
    n: int = 1000
    """Tasks of one round at most."""
    workers: int = 2


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Fixed tasks that every checkpoint is scored on. All tasks of the folder are kept out of the training data."""

    path: Path
    filter: Filter = field(default_factory=Filter)


@dataclass(frozen=True, kw_only=True)
class GateConfig:
    margin: float = 0.0
    """Points that the low end of the interval has to be better by."""
    allowed_loss: float = 2.0
    """Points that may be lost on the retention tasks."""


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    out: Path
    """The loop's folder; the same command goes on with what is in it."""
    watch: Watch
    held_out: Ground
    retention: Ground | None = None
    """Tasks of what it could do before; None asks nothing."""
    model: str = "smollm2-135m"
    """The base model: a name or a folder."""
    checkpoint: str = ""
    """A checkpoint of that base to begin with; '' is the base itself."""
    seed: int = 0
    min_sessions: int = 8
    """New sessions that a round waits for."""
    max_sessions: int = 0
    """Of one round; more wait for the next one. 0 is no limit."""
    replay: float = 1.0
    """Older trajectories for each new one."""
    older: tuple[Path, ...] = ()
    """Ledgers that replay draws from, beside the sessions of earlier rounds: what the first checkpoint learned from."""
    tasks: SessionTasks = field(default_factory=SessionTasks)
    harness: HarnessConfig = field(default_factory=HarnessConfig)
    """The one that checkpoints are trained for and scored under."""
    data: BuildConfig = field(default_factory=BuildConfig)
    sft: SFTSettings = field(default_factory=SFTSettings)
    evaluate: EvalSettings = field(default_factory=EvalSettings)
    gate: GateConfig = field(default_factory=GateConfig)

    def __post_init__(self) -> None:
        if not self.watch.paths:
            raise ValueError("watch.paths names nothing to watch")
        if self.min_sessions < 1 or self.max_sessions < 0 or self.replay < 0:
            raise ValueError("min_sessions is at least 1, max_sessions and replay are not negative")
        if 0 < self.max_sessions < self.min_sessions:
            raise ValueError("max_sessions is below min_sessions: no round could ever begin")
        if self.sft.full:
            raise ValueError("the loop trains adapters: leave sft.full out")

    def resolved(self) -> LoopConfig:
        """With model, seed, harness and the tasks that are kept out in every stage that takes them."""
        kept_out = (self.held_out.path, *([self.retention.path] if self.retention else []))
        data = replace(self.data, model=self.model, decontaminate=(*self.data.decontaminate, *kept_out))
        return replace(
            self,
            data=replace(data, decontaminate=tuple(dict.fromkeys(data.decontaminate))),
            sft=replace(self.sft, model=self.model, adapter="", seed=self.seed),
            evaluate=replace(self.evaluate, seed=self.seed, harness=self.harness),
        )


def load_loop(path: Path, sets: Sequence[str] = ()) -> LoopConfig:
    """Raises ConfigError with the file and the line."""
    return load(LoopConfig, path, list(sets)).resolved()
