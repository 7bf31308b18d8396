"""The examples of docs/serve.md as people run them: other people's clients, unmodified."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from harness.tiny_task import BROKEN, write_task

from inloop.serve.served import ServedCheckpoint
from inloop.serve.server import AppServer, Running, build_app

pytestmark = [pytest.mark.xdist_group("serve"), pytest.mark.filterwarnings("ignore::FutureWarning")]
DOCS = Path(__file__).parents[2] / "docs/serve.md"


def example(name: str, server: Running) -> str:
    """A code block of the page, by the comment that it begins with, with this server's address and token."""
    found = re.search(rf"```\w*\n[#] {re.escape(name)}\n(.*?)```", DOCS.read_text(), re.S)
    assert found, f"docs/serve.md has no example {name!r}"
    return (
        found[1]
        .replace("http://127.0.0.1:8000", server.url)
        .replace("$INLOOP_TOKEN", server.token or "")
        .replace("grpo-last", server.model)
    )


def run(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    return subprocess.run(command, capture_output=True, text=True, timeout=250, env={**clean, "NO_PROXY": "*", **env})


def test_the_openai_client(server: Running) -> None:
    scope: dict[str, Any] = {"print": lambda *a, **k: scope.setdefault("said", []).append(a)}
    exec(compile(example("the openai client", server), "docs/serve.md", "exec"), scope)
    scope["client"].close()
    assert len(scope["said"]) >= 3


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl on this machine")
@pytest.mark.parametrize("name", ["curl", "curl, as it comes", "curl, responses"])
def test_curl(server: Running, name: str) -> None:
    ran = run(["bash", "-ec", example(name, server)])
    assert ran.returncode == 0, ran.stderr
    if name == "curl, as it comes":
        assert ran.stdout.rstrip().endswith("data: [DONE]")
    else:
        assert json.loads(ran.stdout)["object"] in ("chat.completion", "response")


def test_llm(server: Running, tmp_path: Path) -> None:
    llm = Path(sys.executable).with_name("llm")
    path = f"{llm.parent}:{os.environ['PATH']}"
    ran = run(["bash", "-ec", example("llm", server)], LLM_USER_PATH=str(tmp_path), PATH=path)
    assert ran.returncode == 0, ran.stderr
    logged = run([str(llm), "logs", "--json"], LLM_USER_PATH=str(tmp_path))
    [row, *_] = json.loads(logged.stdout)
    assert row["model"] == server.model and row["response"]


def test_ctrl_c_ends_it_in_order(checkpoint: Path) -> None:
    command = [sys.executable, "-c", "from inloop.cli.main import main; main()", "serve", str(checkpoint),
               "--port", "0", "--dtype", "float32", "--slots", "2", "--json", "--grace", "1"]  # fmt: skip
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            told = _first_json(process)
            with openai.OpenAI(base_url=f"{told['url']}/v1", api_key=told["token"]) as client:
                assert client.models.list().data[0].id == "grpo-last"
            process.send_signal(number)
            _, complaints = process.communicate(timeout=120)
            assert process.returncode == 0 and "Traceback" not in complaints, complaints
        finally:
            process.kill()
            process.communicate()


def _first_json(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.startswith("}"):
            return json.loads(text)
    raise AssertionError(text)


SHELL = [
    "I mend it.\n\n```mswea_bash_command\nsed -i 's/a - b/a + b/' calc.py && cat calc.py\n```",
    "Done.\n\n```mswea_bash_command\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```",
]


@pytest.fixture
def scripted(tiny_model: Path) -> Iterator[Callable[[list[str]], Running]]:
    """Our server, with an engine that says what a script tells: a random model mends nothing."""
    from contextlib import ExitStack

    from inloop.engine.scripted import ScriptedEngine
    from inloop.harness.capture import _submitting
    from inloop.train.origin import origin

    with ExitStack() as stack:

        def make(replies: list[str]) -> Running:
            start = origin(str(tiny_model))
            from inloop.data.tokens import load_tokenizer

            script = ScriptedEngine(lambda turn, prompt: replies[min(prompt.count("<|im_start|>assistant") - 1, 1)],
                                    load_tokenizer(tiny_model), max_model_len=1 << 20)  # fmt: skip
            serving = ServedCheckpoint(_submitting(script, tiny_model), start, "scripted")
            guard = build_app(serving, token="t", hosts=None)
            server = stack.enter_context(AppServer(guard, token="t"))
            return Running(server, guard, serving, 1.0)

        yield make


@pytest.mark.agents
def test_mini_swe_agent(scripted: Callable[[list[str]], Running], tmp_path: Path) -> None:
    """Unmodified, from PyPI, with the command of the page: it mends a file through our endpoint."""
    from inloop.harness.mini_swe_agent import MiniSweAgent

    agent = MiniSweAgent()
    server = scripted(SHELL)
    work = write_task(tmp_path).workspace
    path = f"{agent.folders()[0]}/bin:{os.environ['PATH']}"
    script = f"cd {work}\n{example('mini-swe-agent', server)}"
    ran = run(["bash", "-ec", script], HOME=str(tmp_path), MSWEA_GLOBAL_CONFIG_DIR=str(tmp_path), PATH=path)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert (work / "calc.py").read_text() == BROKEN.replace("-", "+")
