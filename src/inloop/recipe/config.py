"""A recipe: which stages, with which settings. What a stage takes from the one before it is filled in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from inloop.data.pipeline import BuildConfig
from inloop.evaluate.run import EvalSettings
from inloop.harness.config import HarnessConfig
from inloop.rollout.expert import ExpertConfig
from inloop.train.grpo_config import GrpoConfig
from inloop.train.sft_settings import SFTSettings

STAGES = ("tasks", "expert", "data", "sft", "grpo", "evaluate", "compare")


@dataclass(frozen=True, kw_only=True)
class TasksPart:
    path: Path | None = None
    """An existing taskset; None builds the starter set."""
    n: int = 1200
    test_share: float = 0.15


@dataclass(frozen=True, kw_only=True)
class ExpertPart:
    tasks: int = 400
    """Training tasks that the scripted expert solves."""
    expert: ExpertConfig = field(default_factory=ExpertConfig)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    stages: tuple[str, ...] = STAGES
    """Any of them, in their order."""
    model: str = "smollm2-135m"
    seed: int = 0
    harness: HarnessConfig = field(default_factory=HarnessConfig)
    """The same one collects, trains and evaluates."""
    tasks: TasksPart = field(default_factory=TasksPart)
    expert: ExpertPart = field(default_factory=ExpertPart)
    data: BuildConfig = field(default_factory=BuildConfig)
    sft: SFTSettings = field(default_factory=SFTSettings)
    grpo: GrpoConfig = field(default_factory=GrpoConfig)
    evaluate: EvalSettings = field(default_factory=EvalSettings)

    def __post_init__(self) -> None:
        for stage in self.stages:
            if stage not in STAGES:
                raise ValueError(f"stages: unknown {stage!r}; known: {', '.join(STAGES)}")

    def resolved(self) -> Recipe:
        """With the model, the seed and the harness in every stage that takes them."""
        return replace(
            self,
            data=replace(self.data, model=self.model),
            sft=replace(self.sft, model=self.model, seed=self.seed),
            grpo=replace(self.grpo, seed=self.seed),
            evaluate=replace(self.evaluate, seed=self.seed),
        )
