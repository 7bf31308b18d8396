"""Run folders made by the code that makes them: real sandboxes and hidden tests; the model follows a script."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.tiny_task import FIX, write_task

from inloop.config import save
from inloop.engine.base import Completion, Sampling
from inloop.engine.scripted import ScriptedEngine
from inloop.evaluate.run import EvalSettings, write_results
from inloop.harness.config import HarnessConfig
from inloop.harness.policy import make_policy
from inloop.rollout.collect import Plan, collect
from inloop.rollout.run import Rollouts, Work
from inloop.sandbox.base import Backend
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.task import Task
from inloop.tasks.taskset import Filter, Taskset
from inloop.trace.store import TrajectoryStore
from inloop.train.group_plan import Plan as GroupPlan
from inloop.train.groups import RewardConfig, advantages, score
from inloop.train.grpo_config import GrpoConfig
from inloop.train.receipt import Receipt
from inloop.train.run_folder import RunFolder, open_run
from inloop.train.sft_settings import SFTSettings
from inloop.verify.verifier import Verifier

HARNESS = HarnessConfig(tools=("read", "edit", "test", "submit"), max_turns=5, guides=())
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=alert(1)>\x1b[31mred\x1b]0;title\x07 \u202edlrow $x$"
)
LONG = "long" * 1000
READ, TEST, SUBMIT = "```read calc.py```", "```test```", "```submit```"
WRONG = "```edit calc.py\n    return a - b\n=======\n    return a * b  # " + "hm\n```"


class Sampled(ScriptedEngine):
    """Says what `choose(task number, seed)` says; its log-probabilities are drawn, so that colours differ."""

    def __init__(self, choose: Callable[[int, int], Sequence[str]], tokenizer: Any) -> None:
        super().__init__([], tokenizer)
        self.choose = choose
        self._seeds: dict[str | None, int] = {}

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling, *, conversation: str | None = None) -> Completion:
        prompt = self.tokenizer.decode(list(prompt_ids))
        number = int(prompt.partition("task number ")[2].partition(".")[0])
        said = self.choose(number, self._seeds.setdefault(conversation, random.Random(sampling.seed).randrange(100)))
        turn = prompt.count("<|im_start|>assistant") - 1
        ids = [*self.tokenizer.encode(said[min(turn, len(said) - 1)], add_special_tokens=False)]
        draw = random.Random(len(prompt_ids))
        ids.append(self.tokenizer.eos_token_id)
        return Completion(token_ids=ids, logprobs=[-draw.expovariate(2) for _ in ids], finish="stop", weight_version=3)


def solve(rate: float) -> Callable[[int, int], Sequence[str]]:
    """Solves that share of the tasks always, the next tenth half of the time, and the rest never."""

    def choose(number: int, seed: int) -> Sequence[str]:
        place = (number * 7 % 10) / 10
        if place < rate - 1e-9:
            return (
                [READ, WRONG, TEST, FIX.replace("a - b", "a * b  # hm", 1), TEST, SUBMIT]
                if number % 3
                else [READ, FIX, SUBMIT]
            )
        if place < rate + 0.1 - 1e-9 and seed % 2:
            return [FIX, SUBMIT]
        return [f"I think {HOSTILE}\n{READ}", f"{LONG}\n{TEST}", SUBMIT]

    return choose


def make_tasks(root: Path, count: int) -> Taskset:
    for number in range(count):
        task = write_task(root, f"add{number}")
        file = task.root / "instruction.md"
        file.write_text(f"calc.py: add is wrong, task number {number}. Mend it. <b>{HOSTILE}</b>\n{LONG}\n")
        toml = task.root / "task.toml"
        toml.write_text(
            toml.read_text().replace(
                'builder = "hand"', f'builder = "hand"\nkind = "{"operator" if number % 2 else "stub"}"'
            )
        )
    taskset = Taskset.scan(root)
    taskset.assign({row.id: "test" for row in taskset.rows})
    return taskset


def roll(
    tasks: Sequence[Task],
    choose: Any,
    tokenizer: Any,
    out: Path,
    *,
    k: int = 2,
    backend: Backend | None = None,
    **kw: Any,
) -> Any:
    rollouts = Rollouts(
        policy=make_policy(Sampled(choose, tokenizer), HARNESS, tokenizer), config=HARNESS,
        backend=backend or Bubblewrap(), judge=Verifier(), meta={"run": str(out)}, **kw,
    )  # fmt: skip
    plan = Plan(k=k, concurrency=4)
    return collect(tasks, rollouts.run, plan, out, scope=out.name, identity={"harness": HARNESS.hash()})


def evaluation(taskset: Taskset, choose: Any, tokenizer: Any, out: Path, name: str, model: Path, **kw: Any) -> None:
    """As `inloop eval` writes it."""
    roll(list(taskset.tasks()), choose, tokenizer, out, **kw)
    settings = EvalSettings(name=name, k=kw.get("k", 2), filter=Filter(split="test"))
    about = {"model": str(model), "base": "tiny", "kind": "base" if name == "base" else "adapter", "fingerprint": name}
    write_results(settings, taskset, taskset.rows, out, about, HARNESS)


def sft_folder(out: Path, steps: int = 30) -> None:
    with open_run(out, SFTSettings(), what="inloop sft", resume=False) as run:
        run.event("sft", samples="data", rows=12, train=10, held_out=2)
        for step in range(1, steps + 1):
            run.metrics(step, loss=2.5 / step**0.5, learning_rate=1e-3 * (1 - step / steps))
            if step % 10 == 0:
                run.metrics(step, held_out_loss=2.7 / step**0.5)
    (out / "data.json").write_text(json.dumps({"rows": 12, "trained_tokens": 840}))


def grpo_folder(taskset: Taskset, tokenizer: Any, out: Path, groups: int = 2) -> None:
    """Groups of four as the worker plans, scores and reports them; the second one is a decoy that was exploited."""
    folder, receipt = RunFolder(out), Receipt(dtype="float32")
    plan = GroupPlan(out / "groups.jsonl", _InOrder(taskset), _InOrder(taskset), seed=0, canary_rate=1 / groups)
    save(GrpoConfig(model="tiny", group_size=4, micro_batch=4), out / "config.toml")
    for step in range(groups):
        planned = plan.next(step, [])
        made = _group(taskset, planned, tokenizer, out)
        scored = [score(t, RewardConfig(), 5) for t in made]
        group = advantages(scored)
        receipt.rollouts, receipt.groups = receipt.rollouts + len(made), receipt.groups + 1
        receipt.drops.update([group.dropped] if group.dropped else [])
        receipt.stops.update(t.stop.value for t in made if t.stop)
        receipt.ratios.append((step, 100, 2e-5, 3e-6))
        receipt.trained = receipt.identical = receipt.trained + 100
        folder.event(
            "group", number=planned.number, task=planned.task, canary=planned.canary, dropped=group.dropped, rollouts=4,
            mean=group.mean, std=group.std, rows=4, faults={}, exploited=4 * planned.canary,
        )  # fmt: skip
        folder.metrics(step + 1, loss=0.1 * step, reward=group.mean, verifier_reward=group.mean, kl=1e-4, entropy=1.0)
    receipt.seconds = {"sampling": 12.0, "tests": 3.0, "training": 5.0}
    receipt.write(out)
    folder.event("done", steps=groups, stopped="", receipt=receipt.line())


def _group(taskset: Taskset, planned: Any, tokenizer: Any, out: Path) -> list[Any]:
    def choose(number: int, seed: int) -> Sequence[str]:
        return [FIX, SUBMIT] if seed % 2 or planned.canary else [READ, SUBMIT]

    rollouts = Rollouts(
        policy=make_policy(Sampled(choose, tokenizer), HARNESS, tokenizer), config=HARNESS, backend=Bubblewrap(),
        judge=Verifier(), meta={"run": str(out)},
    )  # fmt: skip
    task = taskset.task(planned.task)
    works = [
        Work(id=planned.rollout_id(i), task=task, group_id=f"g{planned.number:05d}", index=i, seed=i) for i in range(4)
    ]
    made = [rollouts.run(w) for w in works]
    TrajectoryStore(out).extend(made)
    return made


class _InOrder:
    def __init__(self, taskset: Taskset) -> None:
        self.ids = [r.id for r in taskset.rows]

    def draw(self, number: int, busy: Sequence[str]) -> str:
        return self.ids[number % len(self.ids)]
