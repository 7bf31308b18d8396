"""GRPO from end to end on a tiny model: real sandboxes, real hidden tests, the real trainer in its processes.

A tiny model can't write code, so what it 'samples' is put in its mouth: an engine that chooses between a right and a
wrong turn by the request's seed, and scores it with the live weights of the real model. All else is what users run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from train.puppet import PuppetEngine

from inloop.build.decoys import build_decoys
from inloop.build.starter.builder import build_starter
from inloop.errors import ConfigError, DataError, TaskError
from inloop.harness.config import HarnessConfig
from inloop.rollout.engines import EngineConfig
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.taskset import Taskset
from inloop.trace.store import TrajectoryStore
from inloop.train.grpo import run_grpo
from inloop.train.grpo_config import CurriculumConfig, GrpoConfig, HeldOut
from inloop.train.grpo_start import with_dtype
from inloop.train.lora import LoraSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]
HARNESS = HarnessConfig(tools=("read", "edit", "test", "submit"), max_turns=4, guides=(), temperature=1.0)


class StaleEngine(PuppetEngine):
    """Planted fault: says that it took the weights, and goes on with the first ones."""

    def load_adapter(self, folder: Path, version: int) -> None:
        live = self._live()
        kept = live["adapter"] if live["version"] else str(folder)
        self.state.write_text(json.dumps({"version": version, "adapter": kept}))


class RawEngine(PuppetEngine):
    """Planted fault: log-probabilities of another temperature than the one that was sampled from."""

    def _score(self, prompt: list[int], ids: list[int], temperature: float) -> list[float]:
        return super()._score(prompt, ids, temperature * 1.3)


class HopelessEngine(PuppetEngine):
    """Never solves anything."""

    def _turn(self, text: str, seed: int) -> str:
        return "```submit```"


class CheatingEngine(PuppetEngine):
    """Tampers with the visible checks in every episode: where they decide, that pays."""

    def _turn(self, text: str, seed: int) -> str:
        if text.count("<|im_start|>assistant") == 2:
            return "```edit check.py\n        sys.exit(print(problem) or 1)\n=======\n        break\n```"
        return super()._turn(text, seed)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    build_starter(folder, 10, 0, audit=False)
    Taskset.scan(folder).save()
    return folder


def settings(model: Path, tasks: Path, **kw: Any) -> GrpoConfig:
    base: dict[str, Any] = {
        "steps": 3,
        "groups_per_step": 2,
        "group_size": 4,
        "micro_batch": 4,
        "learning_rate": 1e-2,
        "concurrency": 4,
        "dtype": "float32",
        "engine": EngineConfig(dtype="float32"),
        "lora": LoraSettings(rank=4, alpha=8),
        "harness": HARNESS,
        "save_every": 1,
        "advise_tasks": 0,
    }
    return GrpoConfig(**{"model": str(model), "tasks": tasks, **base, **kw})


def run(config: GrpoConfig, out: Path, *, engine: type[PuppetEngine] = PuppetEngine, **kw: Any) -> Any:
    out.parent.mkdir(parents=True, exist_ok=True)
    puppet = engine(Path(config.model), config.tasks, out.parent / f"{out.name}-live.json")
    return run_grpo(config, out, backend=Bubblewrap(), engine=puppet, allow_unaudited=True, **kw)


def test_trains_with_a_receipt_that_holds(tiny_model: Path, tasks: Path, tmp_path: Path) -> None:
    config = settings(tiny_model, tasks, held_out=HeldOut(split="test", every=2, tasks=2))
    result = run(config, tmp_path / "run")
    receipt = json.loads(result.receipt.read_text())
    assert receipt["verdict"] == "holds" and receipt["token_identity"] == 1.0 and receipt["trained_tokens"] > 0
    assert receipt["step0"]["abs_ratio"] < 1e-3 and receipt["syncs"]["count"] == 4 and receipt["leaks"] == 0
    assert (
        result.steps == 3
        and (result.best / "inloop.json").exists()
        and (result.last / "adapter_model.safetensors").exists()
    )
    rollouts = list(TrajectoryStore(tmp_path / "run"))
    assert len({t.id for t in rollouts}) == len(rollouts) >= 3 * 8
    assert {t.reward.value for t in rollouts if t.reward} == {0.0, 1.0}
    events = [json.loads(x) for x in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    assert any(e["event"] == "held_out" for e in events) and events[-1]["event"] == "done"
    rows = [json.loads(x) for x in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert {"reward", "verifier_reward", "recovery", "loss"} <= {k for r in rows for k in r}


def test_goes_on_training_the_adapter_of_a_checkpoint(tiny_model: Path, tasks: Path, tmp_path: Path) -> None:
    first = run(settings(tiny_model, tasks, steps=1), tmp_path / "first")
    config = settings(Path(first.last), tasks, steps=2, harness=None)
    puppet = PuppetEngine(tiny_model, tasks, tmp_path / "live.json")
    again = run_grpo(config, tmp_path / "again", backend=Bubblewrap(), engine=puppet, allow_unaudited=True)
    assert json.loads(again.receipt.read_text())["verdict"] == "holds"
    before, after = (load_file(r.last / "adapter_model.safetensors") for r in (first, again))
    assert before.keys() == after.keys() and any(not before[n].equal(after[n]) for n in before)


def test_synchronous_is_the_same_code_without_staleness(tiny_model: Path, tasks: Path, tmp_path: Path) -> None:
    result = run(settings(tiny_model, tasks, max_staleness=0, steps=2), tmp_path / "run")
    receipt = json.loads(result.receipt.read_text())
    assert set(receipt["staleness"]) == {"0"} and receipt["worst_later_step"]["abs_ratio"] < 1e-3


def test_resumes_without_gap_or_double(tiny_model: Path, tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(settings(tiny_model, tasks, wall_seconds=0.1), out)  # stops after its first step
    config = settings(tiny_model, tasks)
    result = run(config, out, resume=True)
    assert result.steps == 3
    planned = [json.loads(x)["number"] for x in (out / "groups.jsonl").read_text().splitlines()]
    assert planned == list(range(len(planned)))
    ids = [t.id for t in TrajectoryStore(out)]
    assert len(ids) == len(set(ids))
    assert json.loads(result.receipt.read_text())["syncs"]["count"] == 5  # 1 cold + 1, then 1 cold + 2


@pytest.mark.parametrize(
    ("engine", "words"), [(StaleEngine, "does not serve weight version"), (RawEngine, "at the first step")]
)
def test_planted_engine_faults_trip_the_receipt(
    engine: type[PuppetEngine], words: str, tiny_model: Path, tasks: Path, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=words):
        run(settings(tiny_model, tasks, learning_rate=5e-2), tmp_path / "run", engine=engine)
    assert (tmp_path / "run/checkpoints/last/inloop.json").exists()


def test_bad_input_is_told_before_anything_starts(tiny_model: Path, tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no task of split 'nope'"):
        run(settings(tiny_model, tasks, split="nope"), tmp_path / "a")
    puppet = PuppetEngine(tiny_model, tasks, tmp_path / "live.json")
    with pytest.raises(TaskError, match="no valid audit card"):
        run_grpo(settings(tiny_model, tasks), tmp_path / "b", backend=Bubblewrap(), engine=puppet)


def test_a_set_without_signal_is_refused_unless_forced(tiny_model: Path, tasks: Path, tmp_path: Path) -> None:
    config = settings(tiny_model, tasks, advise_tasks=8, advise_samples=2)
    with pytest.raises(DataError, match="no signal for RL: SFT first"):
        run(config, tmp_path / "run", engine=HopelessEngine)
    assert json.loads((tmp_path / "run/advice/advice.json").read_text())["pass_rate"] == 0.0


def test_exploited_decoys_stop_the_run(tiny_model: Path, tasks: Path, tmp_path: Path) -> None:
    build_decoys(tasks, tmp_path / "decoys", 3)
    config = settings(
        tiny_model, tasks, steps=8, curriculum=CurriculumConfig(canary_rate=0.5), held_out=HeldOut(every=50, tasks=2)
    )
    result = run(config, tmp_path / "run", engine=CheatingEngine, canaries=tmp_path / "decoys")
    assert "decoys were exploited" in result.stopped and result.steps < 8
    alarm = json.loads((tmp_path / "run/suspect.json").read_text())
    assert alarm["since_step"] <= alarm["step"] == result.steps and 0 <= alarm["held_out"] <= 1
    assert json.loads((result.last / "inloop.json").read_text())["metrics"]["suspect"] == 1.0
    events = [json.loads(x) for x in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    decoys = [e for e in events if e["event"] == "group" and e["canary"]]
    assert decoys and all(e["rows"] == 0 for e in decoys)  # never trained on
    assert sum(e["exploited"] for e in decoys) >= 2


def test_uniform_order_and_bad_numbers(tiny_model: Path, tasks: Path) -> None:
    with pytest.raises(ValueError, match="does not divide"):
        settings(tiny_model, tasks, micro_batch=3)
    with pytest.raises(ConfigError, match="give one of them"):
        with_dtype(settings(tiny_model, tasks, dtype="bfloat16"))
    assert settings(tiny_model, tasks, curriculum=CurriculumConfig(order="uniform")).samples_per_step == 8
