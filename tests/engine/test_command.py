"""`inloop engine` as a person runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.server import EngineServer

pytestmark = pytest.mark.xdist_group("engine")


def inloop(*arguments: str, **kw: Any) -> subprocess.Popen[str]:
    code = "import sys; sys.argv = ['inloop', *sys.argv[1:]]; from inloop.cli.main import main; main()"
    command = [sys.executable, "-c", code, "engine", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)


def read_json(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.startswith("}"):
            value: dict[str, Any] = json.loads(text)
            return value
    raise AssertionError(f"no JSON: {text} {process.stderr.read() if process.stderr else ''}")


def test_serve_answers_and_ends_with_ctrl_c(tiny: Path) -> None:
    process = inloop("serve", str(tiny), "--port", "0", "--slots", "2", "--dtype", "float32", "--json")
    try:
        told = read_json(process)
        got = httpx.post(
            f"{told['url']}/v1/completions", json={"prompt": [5, 6], "max_tokens": 3}, timeout=60, trust_env=False
        )
        assert got.json()["usage"]["prompt_tokens"] == 2
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
    finally:
        process.kill()
        process.communicate()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in children):
        time.sleep(0.1)
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def test_mistakes_are_told_without_a_traceback() -> None:
    for arguments, says in (
        (("serve", "no-such-model"), "unknown model"),
        (("info", "http://127.0.0.1:9"), "127.0.0.1:9"),
    ):
        process = inloop(*arguments)
        _, told = process.communicate(timeout=120)
        assert process.returncode == 2 and says in told and "Traceback" not in told


def test_info_names_what_is_served(shared_engine: EmbeddedEngine) -> None:
    with EngineServer(shared_engine) as server:
        process = inloop("info", server.url)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "256 tokens" in said and "processed_logprobs" in said and "LeanForward" in said
