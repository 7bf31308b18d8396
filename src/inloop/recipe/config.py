"""A recipe: which stages, with which settings. What a stage takes from the one before it is filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from inloop.build.starter.plan import MIX
from inloop.config import load
from inloop.data.pipeline import BuildConfig
from inloop.errors import ConfigError
from inloop.evaluate.run import EvalSettings
from inloop.harness.config import HarnessConfig
from inloop.rollout.expert import ExpertConfig
from inloop.train.grpo_config import GrpoConfig
from inloop.train.sft_settings import SFTSettings

STAGES = ("doctor", "tasks", "expert", "data", "sft", "grpo", "evaluate", "compare", "report")
RL_SPLIT = "rl"


@dataclass(frozen=True, kw_only=True)
class TasksPart:
    path: Path | None = None
    """An existing taskset; None builds one."""
    builder: Literal["starter", "mutate", "stub", "commits"] = "starter"
    source: str = ""
    """For the other builders: a folder, a git repository or URL, or pypi:NAME[==VERSION]."""
    n: int = 1200
    misspellings: float = MIX["misspelling"]
    """starter: share of the kind of bug whose traceback names it; the other kinds share the rest as they always do."""
    longest: int = 0
    """starter: characters of the longest function that is taken; 0 takes all."""
    test_share: float = 0.15
    """Of the tasks; whole functions (commits) go to one split."""
    rl_share: float = 0.0
    """Of the training tasks, kept from the traces as the split 'rl': RL on functions whose mending no trace has shown
    can't be paid for what the model knows by heart. 0: both use the split 'train'."""


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
        if self.tasks.path is None and self.tasks.builder != "starter" and not self.tasks.source:
            raise ValueError(f"tasks.builder = {self.tasks.builder!r} needs tasks.source: a folder or pypi:NAME")
        if not 0 <= self.tasks.misspellings < 1:
            raise ValueError(f"tasks.misspellings = {self.tasks.misspellings} is no share in [0, 1)")
        if not 0 <= self.tasks.rl_share < 1:
            raise ValueError(f"tasks.rl_share = {self.tasks.rl_share} is no share in [0, 1)")
        if self.tasks.rl_share and self.tasks.path is not None:
            raise ValueError("tasks.rl_share divides tasks that are built; of a given taskset, name grpo.split")
        for stage in self.stages:
            if stage not in STAGES:
                raise ValueError(f"stages: unknown {stage!r}; known: {', '.join(STAGES)}")

    @property
    def trace_split(self) -> str:
        """Of the tasks that traces are made of."""
        return "train" if self.tasks.rl_share else self.grpo.split

    def resolved(self) -> Recipe:
        """With the model, the seed and the harness in every stage that takes them."""
        return replace(
            self,
            data=replace(self.data, model=self.model),
            sft=replace(self.sft, model=self.model, seed=self.seed),
            grpo=replace(self.grpo, seed=self.seed, split=RL_SPLIT if self.tasks.rl_share else self.grpo.split),
            evaluate=replace(self.evaluate, seed=self.seed),
        )


def load_recipe(name: str | Path, sets: Sequence[str] = ()) -> Recipe:
    """A TOML file, or the name of a recipe that comes along. Raises ConfigError with the file and the line."""
    known = {Path(f.name).stem: f for f in (files("inloop.recipe") / "recipes").iterdir() if f.name.endswith(".toml")}
    given = Path(name)
    if given.suffix != ".toml" and str(name) not in known:
        raise ConfigError(
            f"there is no recipe {str(name)!r}", fix=f"give a TOML file, or one of {', '.join(sorted(known))}"
        )
    file = given if given.suffix == ".toml" else Path(str(known[str(name)]))
    return load(Recipe, file, list(sets)).resolved()
