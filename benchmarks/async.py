"""Asynchronous against synchronous GRPO: the same tasks, model, steps and code; only `max_staleness` differs.

    python benchmarks/async.py                  # tools of log-normal latency, mean 2 s, clipped at 20 s
    python benchmarks/async.py --latency 0      # nothing but computing

A tiny model whose turns are put in its mouth (tests/train/puppet.py) leaves the loop itself: planning, sandboxes,
tools, hidden tests, rows, hand-over of weights, training steps. What the trainer neither trained nor waited for rows is
overhead."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from conftest import build_tiny_model
from train.puppet import PuppetEngine

from inloop.build.starter.builder import build_starter
from inloop.harness.config import HarnessConfig
from inloop.rollout.engines import EngineConfig
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.folder import save_metadata
from inloop.tasks.taskset import Taskset
from inloop.train.grpo import quiet_libraries, run_grpo
from inloop.train.grpo_config import GrpoConfig
from inloop.train.lora import LoraSettings
from inloop.train.receipt import Thresholds

SIGMA = 1.0
CLIP = 20.0
TOOLS = ("read", "edit", "test", "submit")
SLOW = (
    "python3 -S -c 'import math, random, time; time.sleep(min({clip}, random.lognormvariate({mu}, {sigma})))'; {then}"
)


class TestingPuppet(PuppetEngine):
    """Edits, tests (which is where the latency is), submits."""

    def _turn(self, text: str, seed: int) -> str:
        turns = text.count("<|im_start|>assistant") - 1
        return "```test```" if turns == 1 else super()._turn(text, seed)


def make_tasks(folder: Path, latency: float) -> Path:
    """Starter tasks whose visible tests take `latency` seconds more on average."""
    import math

    built = build_starter(folder, 24, 0, test_share=0.0, audit=False)
    for task in built.tasks if latency else ():
        mu = math.log(latency) - SIGMA**2 / 2
        slow = SLOW.format(clip=CLIP, mu=mu, sigma=SIGMA, then=task.test_command)
        limits = replace(task.limits, command_seconds=60.0)
        save_metadata(replace(task, test_command=slow, limits=limits))
    Taskset.scan(folder).save()
    return folder


def once(work: Path, model: Path, tasks: Path, staleness: int, steps: int, out: str) -> dict[str, float]:
    config = GrpoConfig(
        model=str(model), tasks=tasks, steps=steps, groups_per_step=2, group_size=4, micro_batch=4,
        learning_rate=1e-4, concurrency=64, dtype="float32", engine=EngineConfig(dtype="float32"),
        lora=LoraSettings(rank=4, alpha=8), max_staleness=staleness, save_every=1000, advise_tasks=0,
        harness=HarnessConfig(tools=TOOLS, max_turns=5, guides=()), receipt=Thresholds(),
    )  # fmt: skip
    puppet = TestingPuppet(model, tasks, work / f"{out}-live.json")
    began = time.monotonic()
    run_grpo(config, work / out, backend=Bubblewrap(), engine=puppet, allow_unaudited=True)
    wall = time.monotonic() - began
    seconds = json.loads((work / out / "receipt.json").read_text())["seconds"]
    known = sum(seconds.get(name, 0.0) for name in ("training", "waiting", "evaluating"))
    return {"wall": wall, "total": seconds["total"], "known": known}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=2.0, help="mean seconds of a tool call")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--staleness", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    quiet_libraries()
    rows: dict[int, list[dict[str, float]]] = {0: [], given.staleness: []}
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        model = build_tiny_model(work / "model")
        tasks = make_tasks(work / "tasks", given.latency)
        for number in range(given.rounds):
            for staleness, found in rows.items():
                found.append(once(work, model, tasks, staleness, given.steps, f"run-{staleness}-{number}"))
    walls = {s: statistics.median(r["wall"] for r in found) for s, found in rows.items()}
    for staleness, found in rows.items():
        overhead = statistics.median(1 - r["known"] / r["total"] for r in found)
        print(
            f"max_staleness {staleness}: {walls[staleness]:.1f} s for {given.steps} steps, loop overhead {overhead:.1%}"
        )
    print(f"asynchronous over synchronous: x{walls[0] / walls[given.staleness]:.2f}")


if __name__ == "__main__":
    main()
