"""Rollouts of the starter set with a model, scored again by a plain transformers forward: exactness and speed.

    .venv/bin/python benchmarks/rollouts.py --out runs/exact --rollouts 100 --dtype float32

Prints, and writes to OUT/DTYPE.json: the mean difference of the log-probabilities, how many trajectories' ids decode
to their text, rollouts a minute, and the share of the rollouts' time outside the model."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from inloop.build.starter.builder import build_starter
from inloop.engine.models import SMOLLM2, resolve_model
from inloop.harness.config import HarnessConfig
from inloop.rollout.collect import Plan
from inloop.rollout.engines import EngineConfig
from inloop.rollout.job import CollectSettings, run_collect
from inloop.trace.check import check
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Trajectory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from rollout.rescore import differences

HARNESS = HarnessConfig(tools=("read", "edit", "test", "submit"), max_turns=3, max_turn_tokens=32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rollouts", type=int, default=100)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--model", default=SMOLLM2)
    parser.add_argument("--concurrency", type=int, default=32)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if not (args.out / "tasks").is_dir():
        build_starter(args.out / "tasks", args.rollouts // 2, seed=5)
    settings = CollectSettings(
        engine=EngineConfig(model=args.model, dtype=args.dtype),
        harness=HARNESS,
        plan=Plan(k=2, concurrency=args.concurrency),
    )
    summary = run_collect(args.out / "tasks", args.out / args.dtype, settings)
    made = list(TrajectoryStore(args.out / args.dtype))
    told = measure(made, resolve_model(args.model), args.dtype) | {
        "rollouts_per_minute": round(summary.per_minute, 2),
        "share_outside_model": summary.outside_model,
        "seconds": summary.seconds,
        "timings": {k: round(v, 1) for k, v in summary.timings.items()},
        "stops": dict(summary.stops),
    }
    (args.out / f"{args.dtype}.json").write_text(json.dumps(told, indent=2) + "\n")
    print(json.dumps(told, indent=2))


def measure(made: list[Trajectory], folder: Path, dtype: str) -> dict[str, Any]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    wrong = [f for t in made for f in check(t, tokenizer=tokenizer) if f.level == "error"]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    found = list(differences(model, made, HARNESS.temperature))
    return {
        "dtype": dtype,
        "trajectories": len(made),
        "that_decode_to_their_text": len(made) - len({f.trajectory for f in wrong}),
        "sampled_tokens": len(found),
        "mean_difference": sum(found) / len(found),
        "largest_difference": max(found),
    }


if __name__ == "__main__":
    main()
