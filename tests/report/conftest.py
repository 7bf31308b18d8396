"""One chain run, made once a session: tasks, data, SFT, GRPO and three evaluations on the same tasks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from report import runs
from transformers import AutoTokenizer

from inloop.data.drops import Drops
from inloop.files import append_json


@pytest.fixture(scope="session")
def chain_once(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    root = tmp_path_factory.mktemp("chain") / "run"
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    taskset = runs.make_tasks(root / "tasks", 6)
    drops = Drops(trajectories=14, kept=12, samples=12, messages=40, trained=38)
    for i in range(2):
        drops.drop("trajectory", f"t{i}", "reward below the least")
    drops.untrained["a mistake on purpose"] = 2
    drops.write(root / "data" / "drops.json")
    runs.sft_folder(root / "sft")
    runs.grpo_folder(taskset, tokenizer, root / "grpo")
    for name, rate in (("base", 0.0), ("sft", 0.4), ("grpo", 0.9)):
        runs.evaluation(taskset, runs.solve(rate), tokenizer, root / "evaluations" / name, name, tiny_model)
    for stage, seconds in (("tasks", 2.0), ("sft", 30.5), ("grpo", 60.0), ("evaluate", 20.0)):
        append_json(root / "stages.jsonl", {"stage": stage, "seconds": seconds})
    (root / "config.toml").write_text(f'model = "tiny"  # {json.dumps(runs.HOSTILE)}\n')
    return root


@pytest.fixture
def chain(chain_once: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(chain_once, tmp_path / "run"))
