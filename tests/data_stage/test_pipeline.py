"""`inloop data` as a person meets it: files in, a folder out, exit codes, and words for what is wrong."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import build_tiny_model
from data_stage.episodes import episode
from typer.testing import CliRunner, Result

from inloop.cli.data_ import app
from inloop.data.pipeline import BuildConfig, audit_folder, build_folder
from inloop.data.sample import Header, Sample, Span, pick_rows, read_samples, write_samples
from inloop.data.selection import SelectConfig
from inloop.errors import ConfigError, DataError, InloopError
from inloop.harness.config import HarnessConfig
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Trajectory

RECORD = HarnessConfig(tools=("bash", "read", "edit", "test", "submit")).record()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Five good episodes, one repeated, one failed, one torn line."""
    trajectories = [episode(f"t{i}", bug=f"a - b - {i} " + f"x{i} " * 30) for i in range(5)]
    trajectories.append(dataclasses.replace(trajectories[0], id="t9-again"))
    failed = episode("failed", bug="nothing")
    failed.reward = None
    for trajectory in [*trajectories, failed]:
        trajectory.harness = RECORD
    TrajectoryStore(tmp_path / "run").extend([*trajectories, failed])
    with (tmp_path / "run" / "trajectories.jsonl").open("a") as file:
        file.write('{"id": "torn", "no')
    return tmp_path / "run"


def config(model: Path, **kw: Any) -> BuildConfig:
    return BuildConfig(model=str(model), **kw)


def invoke(*args: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in args])


def test_build_counts_everything(ledger: Path, tiny_model: Path, tmp_path: Path) -> None:
    built = build_folder([ledger], tmp_path / "out", config(tiny_model))
    data = json.loads((tmp_path / "out" / "drops.json").read_text())
    assert data["trajectories"] == {"read": 7, "kept": 5, "dropped": {"duplicate": 1, "no verified reward": 1}}
    assert data["samples"]["written"] == 5 and data["lines"] == {"torn tail": 1}
    assert data["messages"] == {"sampled": 30, "trained": 30, "untrained": {}}
    assert built.report.ok and built.header.counts["licence"] == {"Apache-2.0": 5}
    samples, header = read_samples(tmp_path / "out")
    assert [s.id for s in samples] == [f"t{i}#m12" for i in range(5)]
    assert header == built.header and header.harness["hash"] == RECORD["hash"] and header.max_tokens == 2048
    assert audit_folder(tmp_path / "out").ok


def test_building_twice_gives_the_same_bytes(ledger: Path, tiny_model: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        build_folder([ledger], tmp_path / name, config(tiny_model))
    for file in ("samples.parquet", "drops.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_command_line(ledger: Path, tiny_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = tmp_path / "build.toml"
    told.write_text(f'model = "{tiny_model}"\n[select]\nmin_turns = 2\n[mask]\nturns = "last"\n')
    run = invoke("build", ledger, "--out", out, "--config", told, "--json")
    assert run.exit_code == 0, run.output
    data = json.loads(run.stdout)
    assert data["audit"]["ok"] and data["messages"]["untrained"] == {"not the last turn": 25}
    run = invoke("audit", out)
    assert run.exit_code == 0 and "every trained turn ends with its stop token" in run.output
    run = invoke("show", out, "--rows", "1,3-4")
    assert run.exit_code == 0 and "row 1 · t1#m12" in run.output and "row 4" in run.output and "row 0" not in run.output
    run = invoke("show", out, "--rows", "all", "--html", tmp_path / "page.html")
    assert run.exit_code == 0 and (tmp_path / "page.html").read_text().count("<details") == 5


def test_audit_says_which_rows(ledger: Path, tiny_model: Path, tmp_path: Path) -> None:
    build_folder([ledger], tmp_path / "out", config(tiny_model))
    samples, header = read_samples(tmp_path / "out")
    user = samples[3].spans[1]
    samples[3].labels[user.start] = samples[3].input_ids[user.start]
    write_samples(tmp_path / "out" / "samples.parquet", samples, header)
    run = invoke("audit", tmp_path / "out")
    assert run.exit_code == 1 and "fails in 1 rows: 3" in run.output
    run = invoke("audit", tmp_path / "out", "--json")
    assert json.loads(run.stdout)["findings"][0]["row"] == 3


def test_another_tokenizer_is_noticed(ledger: Path, tiny_model: Path, tmp_path: Path) -> None:
    build_folder([ledger], tmp_path / "out", config(tiny_model))
    other = build_tiny_model(tmp_path / "other")
    file = other / "tokenizer.json"
    data = json.loads(file.read_text())
    data["model"]["vocab"] = {k: (v if v < 20 else 20 + (v - 19) % 200) for k, v in data["model"]["vocab"].items()}
    data["model"]["merges"] = []
    file.write_text(json.dumps(data))
    report = audit_folder(tmp_path / "out", str(other))
    assert [f.detail for f in report.findings if f.check == "template"] == ["the ids are of another tokenizer"]


def test_nothing_left_says_why(tiny_model: Path, tmp_path: Path) -> None:
    TrajectoryStore(tmp_path / "run").extend([episode("a"), episode("b", bug="y")])
    with pytest.raises(DataError, match=r"no sample is left: 2 x fewer than 9 turns") as error:
        build_folder([tmp_path / "run"], tmp_path / "out", config(tiny_model, select=SelectConfig(min_turns=9)))
    assert error.value.fix and "drops.json" in error.value.fix
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "trajectories.jsonl").touch()
    with pytest.raises(DataError, match="the input is empty"):
        build_folder([tmp_path / "empty"], tmp_path / "out", config(tiny_model))
    with pytest.raises(DataError, match="no such file"):
        build_folder([tmp_path / "nowhere"], tmp_path / "out", config(tiny_model))


def test_longer_than_the_context(ledger: Path, tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="longer than 100 tokens"):
        build_folder([ledger], tmp_path / "out", config(tiny_model, max_tokens=100))


def test_tokenizer_without_a_stop_token(ledger: Path, tiny_model: Path, tmp_path: Path) -> None:
    model = build_tiny_model(tmp_path / "model")
    (model / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
    )
    with pytest.raises(ConfigError, match="does not end an assistant's turn with a special token"):
        build_folder([ledger], tmp_path / "out", config(model))


def test_what_is_no_model(ledger: Path, tmp_path: Path) -> None:
    with pytest.raises(InloopError, match=r"no config\.json"):
        build_folder([ledger], tmp_path / "out", config(tmp_path))


def test_two_ledgers_with_the_same_rollouts(ledger: Path, tiny_model: Path, tmp_path: Path) -> None:
    built = build_folder([ledger, ledger], tmp_path / "out", config(tiny_model))
    assert built.drops.reasons("line") == {"id already read": 7, "torn tail": 2} and len(built.samples) == 5


def test_the_majoritys_harness_is_recorded(ledger: Path, tiny_model: Path, tmp_path: Path) -> None:
    odd = Trajectory.from_dict(episode("odd", bug="z").to_dict())
    odd.harness = HarnessConfig(max_turns=3).record()
    TrajectoryStore(ledger).append(odd)
    built = build_folder([ledger], tmp_path / "out", config(tiny_model))
    assert built.header.harness["hash"] == RECORD["hash"]
    assert built.drops.notes["trajectory of another harness config than the one recorded"] == 1


def test_samples_survive_the_round_trip(tmp_path: Path) -> None:
    sample = Sample(
        id="é#1", trajectory="é", input_ids=[1, 2, 3], labels=[-100, 2, 3], logprobs=[0.0, -0.5, -0.25],
        weights=[1.0, 0.5, 0.5], advantage=-1.5, weight_version=4, task="t", group="g",
        spans=[Span(node="a", role="user", start=0, end=1),
               Span(node="b", role="assistant", start=1, end=3, sampled=True, trained=True)],
        meta={"reward": 1.0, "source": "x"},
    )  # fmt: skip
    bare = Sample(id="b", trajectory="b", input_ids=[], labels=[])
    header = Header(stop_ids=(3,), opening_ids=(1,), harness={"a": [1]}, max_tokens=5)
    write_samples(tmp_path / "samples.parquet", [sample, bare], header)
    assert read_samples(tmp_path) == ([sample, bare], header)


@pytest.mark.parametrize(("rows", "wanted"), [("0", [0]), ("all", [0, 1, 2]), ("2,0-1", [2, 0, 1])])
def test_rows_by_number(rows: str, wanted: list[int]) -> None:
    samples = [Sample(id=str(i), trajectory="t", input_ids=[], labels=[]) for i in range(3)]
    assert [n for n, _ in pick_rows(samples, rows)] == wanted


@pytest.mark.parametrize("rows", ["x", "3", "0-9", ""])
def test_rows_that_are_not_there(rows: str) -> None:
    samples = [Sample(id=str(i), trajectory="t", input_ids=[], labels=[]) for i in range(3)]
    with pytest.raises(DataError, match=r"row|list"):
        pick_rows(samples, rows)
