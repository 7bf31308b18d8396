"""The command that would serve a checkpoint with vLLM: every flag is there because this checkpoint needs it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import build_tiny_model
from serve.conftest import TEXT, give_template, write_adapter
from typer.testing import CliRunner

from inloop.cli.main import app
from inloop.errors import InloopError
from inloop.serve.server import Settings
from inloop.serve.vllm import PARSERS, Plan, command, run

pytestmark = [pytest.mark.xdist_group("serve"), pytest.mark.filterwarnings("ignore::FutureWarning")]


def flags(plan: Plan) -> dict[str, str]:
    """--name value pairs; a flag without a value has ''."""
    words, out = plan.argv[3:], {}
    for i, word in enumerate(words):
        if word.startswith("--"):
            follows = words[i + 1] if i + 1 < len(words) else "--"
            out[word] = "" if follows.startswith("--") else follows
    return out


def test_an_adapter_in_the_text_dialect(checkpoint: Path, tiny_model: Path) -> None:
    plan = command(Settings(checkpoint=str(checkpoint), token="secret"), python="V/bin/python")
    got = flags(plan)
    assert plan.argv[:3] == ["V/bin/python", "-m", "vllm.entrypoints.openai.api_server"]
    assert got["--model"] == str(tiny_model) and got["--tokenizer"] == str(checkpoint)
    assert got["--lora-modules"] == f"grpo-last={checkpoint}" and got["--max-lora-rank"] == "8"
    assert got["--max-model-len"] == "2048" and got["--host"] == "127.0.0.1"
    assert "--tool-call-parser" not in got and "--chat-template" not in got  # blocks are read by the harness
    assert "secret" not in " ".join(plan.argv) and plan.env["VLLM_API_KEY"] == "secret"


def test_a_native_checkpoint_with_its_template_and_parser(native: Path) -> None:
    got = flags(command(Settings(checkpoint=str(native), open_to_all=True), python="p"))
    assert got["--tool-call-parser"] == "hermes" and "--enable-auto-tool-choice" in got
    assert json.loads(got["--default-chat-template-kwargs"]) == {"enable_thinking": False}
    assert "--reasoning-parser" not in got
    source = Path(got["--chat-template"]).read_text()  # the prefix-preserving one that it was trained with
    from transformers import AutoTokenizer
    from trl.chat_template_utils import get_training_chat_template

    assert source == get_training_chat_template(AutoTokenizer.from_pretrained(native))


def test_full_weights_need_no_adapter_and_a_thinker_its_parser(native: Path, tmp_path: Path) -> None:
    from inloop.train.checkpoint import merge_checkpoint

    merged = merge_checkpoint(native, tmp_path / "merged")
    about = json.loads((merged / "inloop.json").read_text())
    thinks = replace(TEXT, dialect="native", thinking=True, max_context=512)
    (merged / "inloop.json").write_text(json.dumps({**about, "harness": thinks.record()}))
    plan = command(Settings(checkpoint=str(merged), name="mine", open_to_all=True), python="p")
    got = flags(plan)
    assert got["--served-model-name"] == "mine" and "--enable-lora" not in got and "VLLM_API_KEY" not in plan.env
    assert got["--reasoning-parser"] == "qwen3" and got["--max-model-len"] == "512"


def test_what_vllm_can_not_serve_as_it_was_trained(tmp_path: Path, checkpoint: Path) -> None:
    base = give_template(build_tiny_model(tmp_path / "base"), "lfm2_2_5")
    odd = write_adapter(base, tmp_path / "odd", replace(TEXT, dialect="native"))
    with pytest.raises(InloopError, match="no vLLM parser") as error:
        command(Settings(checkpoint=str(odd)), python="p")
    assert error.value.fix and "--tool-parser" in error.value.fix
    named = flags(command(Settings(checkpoint=str(odd)), python="p", tool_parser="lfm2"))
    assert named["--tool-call-parser"] == "lfm2"
    with pytest.raises(InloopError, match="--watch"):
        command(Settings(checkpoint=str(checkpoint), watch=tmp_path), python="p")


def test_every_template_with_a_parser_is_one_that_trl_knows() -> None:
    from trl import chat_template_utils as known

    assert [n for n in PARSERS if not hasattr(known, f"{n}_chat_template")] == []


def test_print_command_and_the_process(checkpoint: Path) -> None:
    ran = CliRunner().invoke(app, ["serve", str(checkpoint), "--engine", "vllm", "--print-command", "--token", "t0p"])
    assert ran.exit_code == 0 and "--lora-modules" in ran.output and "t0p" not in ran.output
    told = "import os, sys; sys.exit(7 if os.environ['VLLM_API_KEY'] == 'k' else 1)"
    assert run(Plan(argv=[sys.executable, "-c", told], env={"VLLM_API_KEY": "k"})) == 7
