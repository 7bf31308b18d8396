"""One real task through the whole chain: sandbox, verifier, harness and parser, engine, one gradient step, reload."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop.build.starter.builder import build_starter
from inloop.data.pipeline import BuildConfig, build_folder
from inloop.engine.base import Sampling
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.models import resolve_model
from inloop.errors import InloopError
from inloop.harness.config import HarnessConfig
from inloop.harness.policy import make_policy
from inloop.recipe.checkup import Check
from inloop.rollout.expert import Expert, ExpertConfig
from inloop.rollout.run import Rollouts, Work
from inloop.sandbox.backends import open_backend
from inloop.tasks.task import Task
from inloop.trace.check import check
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Trajectory
from inloop.train.lora import LoraSettings
from inloop.train.sft_settings import SFTSettings
from inloop.verify.verifier import Verifier

HARNESS = HarnessConfig(
    tools=("read", "edit", "test", "submit"), guides=(), max_turns=8, max_turn_tokens=48, max_tokens=96
)
SAME = 1e-3
"""Mean |ratio - 1| of engine and trainer in float32, above which they are not the same weights."""
TOKENS = 16


@dataclass
class Chain:
    """Each step leaves what the next one needs; `work` is a folder that is thrown away."""

    work: Path
    model: str
    sandbox: str
    tasks: list[Task] = field(default_factory=list)
    engine: EmbeddedEngine | None = None

    def checks(self) -> list[Check]:
        return [
            Check("sandbox", self.isolate),
            Check("task and verifier", self.task, needs=("sandbox",)),
            Check("harness and parser", self.expert, needs=("task and verifier",)),
            Check("model", lambda: str(resolve_model(self.model))),
            Check("engine", self.sample, needs=("model",)),
            Check("agent", self.agent, needs=("engine", "task and verifier")),
            Check("gradient step", self.step, needs=("model", "harness and parser")),
            Check("reload in the engine", self.reload, needs=("gradient step", "engine")),
        ]

    def close(self) -> None:
        if self.engine:
            self.engine.close()

    def isolate(self) -> str:
        found = open_backend(self.sandbox).probe()
        return f"{found.backend}: isolation {found.level}, limits by {found.limits}"

    def task(self) -> str:
        """The audit runs the hidden tests on the solution, on no work and on a skip."""
        self.tasks = build_starter(self.work / "tasks", 1, 0).tasks
        return f"{self.tasks[0].id}: the solution passes its hidden tests, no work fails them"

    def expert(self) -> str:
        policy = make_policy(Expert(self.tasks, ExpertConfig(detours=0.0)), HARNESS)
        done = self._rollout(policy, "expert")
        if done.reward is None or done.reward.value != 1.0:
            raise InloopError(f"the expert did not solve {done.task_id}: {done.stop}, {done.reward}")
        return f"solved in {done.counts.get('turns')} turns, all calls parsed"

    def sample(self) -> str:
        self.engine = EmbeddedEngine.start(self.model, max_model_len=1024, slots=2)
        info = self.engine.info()
        got = self.engine.generate([1, 2, 3], Sampling(max_tokens=TOKENS, seed=0, ignore_eos=True))
        if len(got.token_ids) != TOKENS:
            raise InloopError(f"the engine gave {len(got.token_ids)} tokens of {TOKENS}")
        return f"{info.meta.get('forward', 'transformers')}, {info.dtype}, {TOKENS} tokens sampled"

    def agent(self) -> str:
        """The untrained model in the harness: it need not solve anything, but every token has to be accounted for."""
        from inloop.data.tokens import load_tokenizer

        assert self.engine is not None
        tokenizer = load_tokenizer(resolve_model(self.model))
        done = self._rollout(make_policy(self.engine, HARNESS, tokenizer), "agent")
        if done.stop is None or done.stop.is_fault:
            raise InloopError(f"the rollout met a fault: {done.stop} {done.events[-1:]}")
        wrong = check(done, tokenizer=tokenizer)
        if wrong:
            raise InloopError(f"the trajectory does not hold: {wrong[0]}")
        return f"{done.counts.get('sampled_tokens')} tokens sampled, each with its log-probability; {done.stop.value}"

    def step(self) -> str:
        from inloop.train.sft import sft

        build_folder([self.work / "expert"], self.work / "data", BuildConfig(model=self.model))
        settings = SFTSettings(
            model=self.model, max_steps=1, batch=1, accumulate=1, held_out=0.0, warmup=0.0, smoke=False,
            precision="fp32", lora=LoraSettings(rank=4, alpha=8.0, layers=2),
        )  # fmt: skip
        return f"loss {sft(self.work / 'data', self.work / 'sft', settings).loss:.3f}"

    def reload(self) -> str:
        """The trained weights, served: what the engine reports is what a plain forward of the checkpoint gives."""
        assert self.engine is not None
        folder = self.work / "sft/checkpoints/last"
        self.engine.load_adapter(folder, 1)
        got = self.engine.generate([1, 2, 3], Sampling(max_tokens=TOKENS, seed=1, ignore_eos=True))
        off = _off(folder, [1, 2, 3], got.token_ids, got.logprobs)
        native = self.engine.info().dtype == "float32"
        if off > (SAME if native else SAME * 100):
            raise InloopError(f"mean |ratio - 1| of engine and trainer is {off:.2g}", fix="report it: they differ")
        return f"weight version {got.weight_version}, mean |ratio - 1| of engine and trainer {off:.1e}"

    def _rollout(self, policy: Any, name: str) -> Trajectory:
        task = self.tasks[0]
        rollouts = Rollouts(
            policy=policy,
            config=HARNESS,
            backend=open_backend(self.sandbox),
            judge=Verifier(),
            owner="doctor",
            retries=0,
        )
        done = rollouts.run(Work(id=f"doctor-{name}", task=task, group_id=task.id, index=0, seed=0))
        TrajectoryStore(self.work / name).append(done)
        return done


def _off(folder: Path, prompt: list[int], sampled: list[int], logprobs: list[float]) -> float:
    import torch

    from inloop.train.checkpoint import load_checkpoint

    model = load_checkpoint(folder)[0].eval()
    ids = torch.tensor([[*prompt, *sampled]])
    with torch.no_grad():
        mine = model(input_ids=ids).logits[0].float().log_softmax(-1)
    mine = mine[len(prompt) - 1 : -1].gather(1, ids[0, len(prompt) :, None])[:, 0]
    return float((mine.double() - torch.tensor(logprobs, dtype=torch.double)).exp().sub(1).abs().mean())
