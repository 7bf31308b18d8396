"""SFT on a tiny model: the loss is TRL's, the order is fixed, a killed run ends where it would have ended."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from data_stage.episodes import TOOLS, episode

from inloop import config
from inloop.data.audit import audit
from inloop.data.builder import Builder
from inloop.data.mask import MaskConfig
from inloop.data.sample import MASKED, Header, Sample, write_samples
from inloop.data.tokens import fingerprint, load_tokenizer, opening_ids
from inloop.errors import DataError, InloopError
from inloop.harness.text import TextDialect
from inloop.train import checkpoint
from inloop.train.lora import LoraSettings
from inloop.train.run_folder import RunFolder
from inloop.train.sft import sft, split_rows
from inloop.train.sft_settings import SFTSettings

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*lr_scheduler:UserWarning"
)


@pytest.fixture(scope="module")
def header(tiny_model: Path) -> Header:
    tokenizer = load_tokenizer(tiny_model)
    dialect = TextDialect(tokenizer, TOOLS)
    return Header(
        tokenizer=fingerprint(tokenizer),
        model=str(tiny_model),
        stop_ids=dialect.stop_token_ids,
        opening_ids=opening_ids(dialect),
        dialect="text",
        mask=dataclasses.asdict(MaskConfig()),
        harness={"dialect": "text", "hash": "0123456789ab"},
    )


def rows_of(model: Path, count: int = 24) -> list[Sample]:
    tokenizer = load_tokenizer(model)
    dialect = TextDialect(tokenizer, TOOLS)
    builder = Builder(tokenizer=tokenizer, stop_ids=dialect.stop_token_ids, encoder=lambda t: dialect)
    return [s for i in range(count) for s in builder.take(episode(f"t{i}", bug="a - b" + " - c" * (i % 5) + f" - {i}"))]


@pytest.fixture(scope="module")
def samples(tiny_model: Path, header: Header, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    rows = rows_of(tiny_model)
    assert audit(rows, header, vocabulary=400).ok
    write_samples(folder / "samples.parquet", rows, header)
    return folder


def settings(model: Path, **kw: Any) -> SFTSettings:
    given: dict[str, Any] = {
        "model": str(model), "lora": LoraSettings(rank=4, alpha=8.0), "lr": 1e-2, "batch": 4, "accumulate": 1,
        "epochs": 2.0, "save_every": 2, "held_out": 0.1, **kw,
    }  # fmt: skip
    return SFTSettings(**given)


def curve(run: Path) -> list[tuple[int, float]]:
    return [(r["step"], r["loss"]) for r in RunFolder(run).read_metrics() if "loss" in r]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "adapter_model.safetensors")


def test_it_learns_and_leaves_a_whole_run(samples: Path, tiny_model: Path, header: Header, tmp_path: Path) -> None:
    told = settings(tiny_model, full=True, lr=5e-3, epochs=3.0)  # an adapter can't do much for random weights
    trained = sft(samples, tmp_path / "run", told)
    losses = [loss for _, loss in curve(trained.run)]
    assert trained.steps == len(losses) == 18 and losses[-1] < 0.8 * losses[0]
    assert trained.held_out_loss is not None and trained.held_out_loss < 0.8 * losses[0]
    assert trained.tokens_per_second > 0
    what = checkpoint.read_about(trained.best)
    assert what.harness["hash"] == "0123456789ab" and what.dialect == "text" and what.base_model == str(tiny_model)
    assert what.metrics["held_out_loss"] == pytest.approx(trained.held_out_loss)
    assert config.load(SFTSettings, trained.run / "config.toml") == told
    events = [json.loads(line)["event"] for line in (trained.run / "events.jsonl").read_text().splitlines()]
    assert events == ["sft", "smoke", *["measured"] * 3, "done"]


def test_the_loss_is_trls(tiny_model: Path, samples: Path, tmp_path: Path) -> None:
    """The lean head gives TRL's own loss and gradients, from the same rows."""
    from trl import SFTTrainer

    from inloop.train.sft_loop import make_trainer

    rows = rows_of(tiny_model, 4)
    made = {}
    for name, layers in (("lean", 0), ("trl", 0)):
        torch.manual_seed(0)
        trainer = make_trainer(
            RunFolder(tmp_path / name), rows, [], load_tokenizer(tiny_model),
            settings(tiny_model, lora=LoraSettings(rank=4, layers=layers)),
        )  # fmt: skip
        with torch.no_grad():
            for parameter in trainer.model.parameters():
                if parameter.requires_grad:
                    parameter.normal_(std=0.05)
        batch = trainer._prepare_inputs(trainer.data_collator([trainer.train_dataset[i] for i in range(4)]))
        trainer.model.train()
        compute = SFTTrainer.compute_loss if name == "trl" else type(trainer).compute_loss
        loss = compute(trainer, trainer.model, dict(batch), num_items_in_batch=torch.tensor(100))
        loss.backward()
        made[name] = loss.item(), [p.grad for p in trainer.model.parameters() if p.grad is not None]
    assert made["lean"][0] == pytest.approx(made["trl"][0], rel=1e-5)
    for ours, theirs in zip(made["lean"][1], made["trl"][1], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)


def test_head_loss_in_full_training() -> None:
    from inloop.train.loss import head_loss

    torch.manual_seed(0)
    hidden = torch.randn(600, 8, requires_grad=True)
    head = torch.randn(30, 8, requires_grad=True)
    labels, factor = torch.randint(0, 30, (600,)), torch.rand(600)
    loss, hits = head_loss(hidden, head, labels, factor)
    (loss * 0.5).backward()
    mine = hidden.grad.clone(), head.grad.clone()  # type: ignore[union-attr]
    hidden.grad = head.grad = None
    logits = hidden @ head.T
    exact = (torch.nn.functional.cross_entropy(logits, labels, reduction="none") * factor).sum()
    (exact * 0.5).backward()
    torch.testing.assert_close(loss, exact)
    torch.testing.assert_close(mine[0], hidden.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mine[1], head.grad, rtol=1e-4, atol=1e-5)
    assert hits == (logits.argmax(-1) == labels).sum()


def test_the_last_blocks_alone(samples: Path, tiny_model: Path, tmp_path: Path) -> None:
    trained = sft(samples, tmp_path / "run", settings(tiny_model, lora=LoraSettings(rank=4, layers=1), max_steps=2))
    assert {name.split("layers.")[1].split(".")[0] for name in weights(trained.last)} == {"1"}


def test_weights_scale_the_loss(tiny_model: Path, header: Header, tmp_path: Path) -> None:
    """A weight of 0 everywhere but in one turn is that turn alone."""
    losses = {}
    for name in ("masked", "weighted"):
        rows = rows_of(tiny_model, 8)
        for row in rows:
            last = row.spans[-1]
            if name == "masked":
                row.labels[: last.start] = [MASKED] * last.start
                for span in row.spans[:-1]:
                    span.trained, span.why = False, "not the last turn"
            else:
                row.weights = [0.0] * last.start + [1.0] * (last.end - last.start)
        write_samples(tmp_path / name / "samples.parquet", rows, header)
        trained = sft(tmp_path / name, tmp_path / f"{name}-run", settings(tiny_model, max_steps=1, held_out=0.0))
        share = sum(r.spans[-1].end - r.spans[-1].start for r in rows) / sum(r.trained for r in rows)
        losses[name] = trained.loss / share if name == "weighted" else trained.loss
    assert losses["weighted"] == pytest.approx(losses["masked"], rel=0.1)


def test_packing_and_full_training(samples: Path, tiny_model: Path, tmp_path: Path) -> None:
    full = settings(tiny_model, full=True, packing=True, pack_tokens=700, batch=1, accumulate=2, lr=1e-3, epochs=1.0)
    trained = sft(samples, tmp_path / "run", full)
    losses = [loss for _, loss in curve(trained.run)]
    assert losses[-1] < losses[0] and checkpoint.read_about(trained.best).kind == "full"
    model, _, _ = checkpoint.load_checkpoint(trained.best)
    assert model.config.num_hidden_layers == 2


def test_the_same_seed_gives_the_same_curve(samples: Path, tiny_model: Path, tmp_path: Path) -> None:
    told = settings(tiny_model, max_steps=4)
    first, again, other = (
        sft(samples, tmp_path / name, dataclasses.replace(told, seed=seed))
        for name, seed in (("a", 7), ("b", 7), ("c", 8))
    )
    assert curve(first.run) == curve(again.run) != curve(other.run)
    assert all(torch.equal(v, weights(again.last)[k]) for k, v in weights(first.last).items())


KILLED = """
import sys
from pathlib import Path
from inloop import config
from inloop.train.sft import sft
from inloop.train.sft_settings import SFTSettings
sft(Path(sys.argv[1]), Path(sys.argv[2]), config.load(SFTSettings, Path(sys.argv[3])), resume=True)
"""


def test_killed_and_resumed_ends_where_it_would_have_ended(samples: Path, tiny_model: Path, tmp_path: Path) -> None:
    """kill -9 in the middle of an epoch; the loss of every step and the final weights are those of one go."""
    told = settings(tiny_model, lora=LoraSettings(rank=4, alpha=8.0, dropout=0.1))
    whole = sft(samples, tmp_path / "whole", told)
    file, run = tmp_path / "told.toml", tmp_path / "killed"
    config.save(told, file)
    command = [sys.executable, "-c", KILLED, str(samples), str(run), str(file)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while process.poll() is None and len(curve(run)) < 7:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(curve(run)) < whole.steps, "it was killed before it was done"
    torn = run / "state" / "checkpoint-999"
    torn.mkdir()
    (torn / "trainer_state.json").write_text("{")
    resumed = sft(samples, run, told, resume=True)
    assert resumed.steps == whole.steps and not torn.exists()
    assert curve(run) == curve(whole.run)
    assert resumed.held_out_loss == whole.held_out_loss
    assert all(torch.equal(v, weights(resumed.last)[k]) for k, v in weights(whole.last).items())
    assert sft(samples, run, told, resume=True).loss == whole.loss, "resuming a finished run changes nothing"


@pytest.mark.slow
def test_two_processes_are_one_run(samples: Path, tiny_model: Path, tmp_path: Path) -> None:
    """Data parallel over two processes: the losses of one process with twice the batch, one record, no fight."""
    alone = sft(samples, tmp_path / "one", settings(tiny_model, batch=4, max_steps=3))
    config.save(settings(tiny_model, batch=2, max_steps=3), tmp_path / "two.toml")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [str(Path(sys.executable).parent / "inloop"), "sft", str(samples), "--out", str(tmp_path / "two")]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [*torchrun, *command, "--config", str(tmp_path / "two.toml")], capture_output=True, text=True, env=env
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.count("3 steps, loss") == 1
    for (step, mine), (other, theirs) in zip(curve(tmp_path / "two"), curve(alone.run), strict=True):
        assert step == other and mine == pytest.approx(theirs, rel=1e-4)


def test_task_success_decides_which_checkpoint_is_best(samples: Path, tiny_model: Path, tmp_path: Path) -> None:
    seen: list[Path] = []

    def evaluate(folder: Path) -> dict[str, float]:
        assert checkpoint.read_about(folder).kind == "adapter"
        seen.append(folder)
        return {"success": [0.2, 0.6, 0.4][len(seen) - 1]}

    told = settings(tiny_model, max_steps=6, eval_every=2)
    trained = sft(samples, tmp_path / "run", told, evaluate=evaluate)
    assert len(seen) == 3 and trained.success == 0.4
    best = checkpoint.read_about(trained.best)
    assert best.step == 4 and best.metrics["success"] == 0.6 and checkpoint.read_about(trained.last).step == 6


def test_stopped_by_its_time_limit_and_resumed(samples: Path, tiny_model: Path, tmp_path: Path) -> None:
    told = settings(tiny_model, max_steps=6)
    whole = sft(samples, tmp_path / "whole", told)
    sft(samples, tmp_path / "cut", dataclasses.replace(told, wall_seconds=1e-6))
    assert curve(tmp_path / "cut") == curve(whole.run)[:1]
    sft(samples, tmp_path / "cut", told, resume=True)
    assert curve(tmp_path / "cut") == curve(whole.run)


def test_held_out_goes_by_task(tiny_model: Path) -> None:
    rows = rows_of(tiny_model, 20)
    for i, row in enumerate(rows):
        row.task = f"task-{i // 4}"
    train, held_out = split_rows(rows, 0.4, 0)
    assert len(held_out) == 8 and not {r.task for r in train} & {r.task for r in held_out}
    assert split_rows(rows, 0.4, 0)[1] == held_out and split_rows(rows, 0.0, 0) == (rows, [])


def test_bad_samples_are_refused(tiny_model: Path, header: Header, samples: Path, tmp_path: Path) -> None:
    rows = rows_of(tiny_model, 4)
    user = rows[2].spans[1]
    rows[2].labels[user.start] = rows[2].input_ids[user.start]
    write_samples(tmp_path / "bad.parquet", rows, header)
    with pytest.raises(DataError, match=r"row 2: roles: 1 tokens of user message m1 train"):
        sft(tmp_path / "bad.parquet", tmp_path / "run", settings(tiny_model))
    write_samples(tmp_path / "empty.parquet", [], header)
    with pytest.raises(DataError, match="no samples at all"):
        sft(tmp_path / "empty.parquet", tmp_path / "run", settings(tiny_model))
    write_samples(tmp_path / "other.parquet", rows_of(tiny_model, 2), dataclasses.replace(header, tokenizer="0" * 12))
    with pytest.raises(DataError, match="made with the tokenizer of"):
        sft(tmp_path / "other.parquet", tmp_path / "run", settings(tiny_model))
    with pytest.raises(DataError, match="no such file"):
        sft(tmp_path / "nothing", tmp_path / "run", settings(tiny_model))
    (tmp_path / "junk.parquet").write_bytes(b"PAR1 this is not parquet")
    with pytest.raises(DataError, match="not a samples file"):
        sft(tmp_path / "junk.parquet", tmp_path / "run", settings(tiny_model))
    assert not (tmp_path / "run").exists()


def test_samples_longer_than_the_model_are_refused(tiny_model: Path, header: Header, tmp_path: Path) -> None:
    row = rows_of(tiny_model, 1)[0]
    extra = 2049 - len(row.input_ids)
    row.input_ids, row.labels = [9] * extra + row.input_ids, [MASKED] * extra + row.labels
    for span in row.spans:
        span.start, span.end = span.start + extra, span.end + extra
    row.spans[0].start = 0
    write_samples(tmp_path / "long.parquet", [row], header)
    with pytest.raises(DataError, match=r"2049 tokens.*2048"):
        sft(tmp_path / "long.parquet", tmp_path / "run", settings(tiny_model))


def test_a_run_folder_holds_one_run(samples: Path, tiny_model: Path, tmp_path: Path) -> None:
    told = settings(tiny_model, max_steps=1)
    sft(samples, tmp_path / "run", told)
    with pytest.raises(InloopError, match="already holds a run"):
        sft(samples, tmp_path / "run", told)
    with pytest.raises(InloopError, match="another config"):
        sft(samples, tmp_path / "run", dataclasses.replace(told, lr=1e-4), resume=True)


def test_tokenizer_without_pad_token(samples: Path, tiny_model: Path, tmp_path: Path) -> None:
    import shutil

    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    file = model / "tokenizer_config.json"
    told = json.loads(file.read_text())
    told.pop("pad_token")
    file.write_text(json.dumps(told))
    assert load_tokenizer(model).pad_token is None
    assert sft(samples, tmp_path / "run", settings(model, max_steps=1)).steps == 1


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"held_out": 1.0}, {"lr": 0.0}, {"full": True, "adapter": "x"}])
def test_values_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"batch|held_out|adapter"):
        SFTSettings(**wrong)
