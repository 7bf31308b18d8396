"""Parity holds for what was trained, in every form; a template, a parser or an adapter of another kind is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from serve.conftest import TEXT
from typer.testing import CliRunner

from inloop.cli.main import app
from inloop.errors import InloopError
from inloop.serve.export import ExportSettings, export
from inloop.serve.parity import ParitySettings, Report, parity
from inloop.serve.server import Running

pytestmark = [pytest.mark.xdist_group("serve"), pytest.mark.filterwarnings("ignore::FutureWarning")]


def at(server: Running, checkpoint: Path, **kw: Any) -> Report:
    return parity(str(checkpoint), ParitySettings(url=server.url, token=server.token, tokens=16, **kw))


def test_it_holds_for_the_checkpoint_itself(server: Running, checkpoint: Path) -> None:
    report = at(server, checkpoint)
    assert report.holds, report.failures
    assert report.turns == 6 and report.prompts["same"] == 6 and report.prompts["different"] == 0
    assert report.calls["same"] == report.calls["checked"] == 12 and report.calls["recorded_turns"] == 6
    assert report.logprobs["mean_abs"] < 1e-3 < 0.1 < report.logprobs["base_mean_abs"]
    assert report.defects["base"] is not None


def test_it_holds_in_the_native_dialect(start: Callable[..., Running], native: Path) -> None:
    report = at(start(native), native)
    assert report.holds, report.failures
    assert report.prompts["same"] == report.turns == 2 and report.calls["share"] == 1.0


@pytest.mark.slow
def test_it_holds_for_rollouts_of_the_trained_agent(
    server: Running, checkpoint: Path, tmp_path: Path, start: Callable[..., Running]
) -> None:
    """Real episodes of the checkpoint in the sandbox: what it sampled, however it spelt it."""
    from harness.tiny_task import write_task

    from inloop.harness.policy import make_policy
    from inloop.rollout.run import Rollouts
    from inloop.sandbox.bubblewrap import Bubblewrap
    from inloop.trace.store import TrajectoryStore
    from inloop.verify.verifier import Verifier

    form = server.serving.form
    policy = make_policy(server.serving.engine, TEXT, form.tokenizer)
    rollouts = Rollouts(policy=policy, config=TEXT, backend=Bubblewrap(), judge=Verifier())
    store = TrajectoryStore(tmp_path)
    store.extend(rollouts.run_group(write_task(tmp_path / "tasks"), 2, seed=1))
    report = at(server, checkpoint, trajectories=(tmp_path,), turns=8)
    assert report.holds, report.failures
    assert report.turns >= 2 and report.prompts["same"] >= 2  # the first prompt of each holds nothing sampled


@pytest.mark.parametrize("to", ["adapter", "merged"])
def test_it_holds_for_exports(checkpoint: Path, tmp_path: Path, to: str) -> None:
    out = export(checkpoint, tmp_path / to, ExportSettings(to=to))
    report_file = tmp_path / "report.json"
    ran = CliRunner().invoke(
        app, ["parity", str(checkpoint), "--artefact", str(out), "--tokens", "12", "--out", str(report_file), "--json"]
    )
    told = json.loads(report_file.read_text())
    assert ran.exit_code == 0 and told["verdict"] == "holds", told["failures"]
    assert told["prompts"]["same"] == told["turns"] and told["calls"]["share"] == 1.0
    assert told["logprobs"]["mean_abs"] < 1e-3


@pytest.mark.slow
def test_it_holds_for_a_gguf(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    from serve.test_export import smol_shaped

    checkpoint = smol_shaped.__wrapped__(tmp_path_factory)  # type: ignore[attr-defined]
    out = export(checkpoint, tmp_path / "gguf", ExportSettings(to="gguf", gguf_type="f32"))
    report = parity(str(checkpoint), ParitySettings(artefact=str(out), tokens=12))
    assert report.holds, report.failures
    assert report.prompts["same"] == report.turns and report.logprobs["mean_abs"] < 2e-3


def plant(checkpoint: Path, folder: Path, **about: Any) -> Path:
    """The checkpoint with something else in its `inloop.json`."""
    shutil.copytree(checkpoint, folder)
    told = json.loads((folder / "inloop.json").read_text())
    (folder / "inloop.json").write_text(json.dumps({**told, **about}))
    return folder


def test_another_template_is_found(start: Callable[..., Running], checkpoint: Path, tmp_path: Path) -> None:
    wrong = plant(checkpoint, tmp_path / "wrong")
    template = (wrong / "chat_template.jinja").read_text()
    (wrong / "chat_template.jinja").write_text(template.replace("m['role'] + '\n'", "m['role'] + ': '"))
    report = at(start(wrong), checkpoint)
    assert report.prompts["different"] == report.turns and report.prompts["examples"]
    assert any("not what the checkpoint saw" in failure for failure in report.failures)


def test_another_parser_is_found(
    start: Callable[..., Running], native: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The native checkpoint behind a server that reads fenced blocks."""
    wrong = plant(native, tmp_path_factory.mktemp("parser") / "wrong", dialect="text", harness=TEXT.record())
    report = at(start(wrong), native)
    assert any("read as other calls" in failure for failure in report.failures), report.failures
    assert report.calls["examples"][0]["served"] == []


def test_another_adapter_is_found(start: Callable[..., Running], checkpoint: Path, newer: Path) -> None:
    report = at(start(newer), checkpoint)
    assert report.prompts["different"] == 0
    assert any("apart" in failure for failure in report.failures)


def test_the_base_model_in_place_of_the_checkpoint_is_found(
    start: Callable[..., Running], checkpoint: Path, tiny_model: Path
) -> None:
    server = start(tiny_model)
    strict, loose = at(server, checkpoint), at(server, checkpoint, tolerance=100.0)
    assert any("apart" in failure for failure in strict.failures)
    assert any("nearer to the base" in failure for failure in loose.failures)


def test_a_failed_parity_blocks(server: Running, newer: Path) -> None:
    arguments = ["parity", str(newer), "--url", server.url, "--token", server.token or "", "--tokens", "8"]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 1 and "fails" in ran.output


def test_mistakes_are_told(server: Running, checkpoint: Path, tmp_path: Path) -> None:
    for settings, says in (
        (ParitySettings(), "needs an endpoint"),
        (ParitySettings(url=server.url, token="wrong"), "token"),
        (ParitySettings(url="http://127.0.0.1:9"), "127.0.0.1:9"),
        (ParitySettings(url=server.url, token=server.token, trajectories=(tmp_path,)), "no such file"),
    ):
        with pytest.raises(InloopError, match=says):
            parity(str(checkpoint), settings)
