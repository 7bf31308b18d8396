"""What the server gives to clients of OpenEnv as they are."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from env.conftest import FIX, held_leases, processes, until
from openenv.core import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient
from typer.testing import CliRunner

from inloop.cli.env_ import app
from inloop.env.client import InloopEnv
from inloop.env.models import InloopAction
from inloop.env.serve import EnvServer
from inloop.errors import InloopError
from inloop.harness.config import HarnessConfig
from inloop.sandbox import lease

EXAMPLES = Path(__file__).parents[2] / "examples"


def get(url: str, headers: dict[str, str] | None = None, body: Any = None, method: str | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    head = {"Content-Type": "application/json", **(headers or {})}
    with urllib.request.urlopen(urllib.request.Request(url, data, head, method=method), timeout=30) as answer:
        text = answer.read().decode()
        return json.loads(text) if "json" in answer.headers["content-type"] else text


def status(url: str, headers: dict[str, str] | None = None) -> int:
    try:
        get(url, headers)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def test_a_solved_episode(server: EnvServer) -> None:
    with GenericEnvClient(server.url) as env:
        first = env.reset(task_id="add", episode_id="mine")
        assert first.reward is None and not first.done
        assert first.observation["text"] == "calc.py: add is wrong. Mend it."
        budget = first.observation["budget"]
        assert budget["command_seconds"] == 10 and budget["verify_seconds"] == 120 and budget["steps"] == 100
        assert [t["function"]["name"] for t in first.observation["tools"]][-1] == "submit"
        seen = env.step({"tool": "read", "path": "calc.py"})
        assert "return a - b" in seen.observation["text"] and seen.reward == 0.0
        assert env.step(FIX).observation["text"] == "ok"
        assert env.step({"tool": "bash", "command": "cd /tmp && pwd"}).observation["text"] == "/tmp"
        assert env.step({"tool": "bash", "command": "pwd"}).observation["text"] == "/tmp"
        (listed,) = server.sessions["sessions"]
        assert [listed["lease"]] == held_leases()
        last = env.step({"tool": "submit"})
        assert (last.reward, last.done, last.metadata["verdict"]) == (1.0, True, "passed")
        assert not held_leases()  # given back before the verdict
        state = env.state()
        assert (state["episode_id"], state["step_count"], state["stop"]) == ("mine", 5, "submitted")
        assert env.step({"tool": "read", "path": "calc.py"}).observation["text"].startswith("the episode is over")
        assert env.reset(task_id="add").done is False


def test_a_failed_one_and_a_mistake_are_told_apart(server: EnvServer) -> None:
    with InloopEnv(server.url) as env:
        env.reset(split="test", index=0)
        seen = env.step(InloopAction(tool="read", path="nothing.py"))
        assert seen.observation.is_error and seen.reward == 0.0 and not seen.done
        assert env.step(InloopAction(tool="edit", path="calc.py")).observation.text.startswith("error: old is missing")
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            env._run_sync(lambda: env._send_and_receive({"type": "step", "data": {"tool": "sudo"}}))
        last = env.step(InloopAction(tool="submit"))
        assert last.done and last.reward == 0.0 and last.metadata["fraction"] == 0.0
        with pytest.raises(RuntimeError, match="reset takes no tsk_id"):
            env.reset(tsk_id="add")
        with pytest.raises(RuntimeError, match="no task 'nobody'"):
            env.reset(task_id="nobody")


def test_the_seed_chooses(server: EnvServer) -> None:
    with InloopEnv(server.url) as env:
        chosen = [env.reset(seed=s, split="train").observation.task_id for s in range(6)]
        again = [env.reset(seed=s, split="train").observation.task_id for s in range(6)]
    assert chosen == again and set(chosen) == {"add", "add2"}


def test_task_api(server: EnvServer) -> None:
    env = InloopEnv(server.url)
    assert env.splits() == [{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]
    assert [t["id"] for t in env.tasks("train")] == ["add", "add2"]
    assert env.task("test", 0)["instruction"].startswith("calc.py")
    with pytest.raises(InloopError, match="400"):
        env.task("test", 7)
    assert get(f"{server.url}/inloop_env/num_tasks", body={"split": "train"}) == {"num_tasks": 2}
    assert not server.sessions["sessions"]


async def over_mcp(url: str) -> dict[str, Any]:
    async with MCPToolClient(base_url=url) as env:
        await env.reset(task_id="add")
        names = [t.name for t in await env.list_tools()]
        text = await env.call_tool("read", path="calc.py")
        await env.call_tool(FIX["tool"], **{k: v for k, v in FIX.items() if k != "tool"})
        state = await env.state()
        last = await env.call_tool("submit")
        return {"names": names, "text": text, "steps": state.step_count, "last": last}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_same_tools_over_mcp(server: EnvServer) -> None:
    import asyncio

    told = asyncio.run(over_mcp(server.url))
    assert told["names"] == ["bash", "read", "edit", "write", "test", "submit"]
    assert "return a - b" in told["text"] and told["steps"] == 2
    assert told["last"] == "submitted"
    assert server.server.hall.sessions.counts["verdicts_total", "passed"] == 1


def test_a_token_for_every_route(serve: Callable[..., EnvServer]) -> None:
    server = serve(token="secret")
    paths = ["/health", "/metadata", "/schema", "/state", "/docs", "/openapi.json", "/metrics", "/admin/sessions",
             "/inloop_env/splits", "/list_environments", "/nothing"]  # fmt: skip
    assert {status(server.url + p) for p in paths} == {401}
    assert status(f"{server.url}/health", {"Authorization": "Bearer secret"}) == 200
    assert status(f"{server.url}/health", {"X-Inloop-Token": "secret"}) == 200
    assert status(f"{server.url}/health", {"Authorization": "Bearer secre"}) == 401
    for path in ("/reset", "/step", "/mcp", "/inloop_env/tasks"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(server.url + path, body={})
    with pytest.raises(ConnectionError), GenericEnvClient(server.url) as env:
        env.reset()
    with pytest.raises(InloopError, match="token right"):
        InloopEnv(server.url, token="wrong").reset()
    with GenericEnvClient(server.url, headers={"Authorization": "Bearer secret"}) as env:
        assert not env.reset(task_id="add").done
    with InloopEnv(server.url, token="secret") as typed:
        assert not typed.reset(task_id="add").done


def test_without_a_token_web_pages_stay_out(server: EnvServer) -> None:
    assert status(f"{server.url}/health") == 200
    assert status(f"{server.url}/health", {"Origin": "http://evil.example"}) == 401
    assert status(f"{server.url}/health", {"Host": "evil.example"}) == 401


def test_the_agent_reaches_neither_server_nor_hidden_tests(server: EnvServer, tasks: Path) -> None:
    port = server.port
    commands = [
        f"cat {tasks}/add/tests/test_calc.py",
        "cat /proc/*/environ | tr '\\0' '\\n' | grep -c PYTEST_CURRENT_TEST",
        f"python3 -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/reset', b'{{}}', 3)\"",
        f"ls /proc/{os.getpid()}/mem",
        f"kill -9 {os.getpid()}",
    ]
    with InloopEnv(server.url) as env:
        env.reset(task_id="add")
        for command in commands:
            seen = env.step(InloopAction(tool="bash", command=command))
            assert seen.observation.is_error, (command, seen.observation.text)
        assert env.step(InloopAction(tool="read", path="calc.py")).observation.text.startswith("def add")
        assert env.step(InloopAction(tool="read", path="../../etc/passwd")).observation.is_error


def test_deadlines_and_clipping(serve: Callable[..., EnvServer]) -> None:
    server = serve(max_steps=4)
    with InloopEnv(server.url) as env:
        env.reset(task_id="add")
        slow = env.step(InloopAction(tool="bash", command="sleep 61 & sleep 60", timeout_s=0.3)).observation
        assert "over the wall limit" in slow.text
        left = env.step(InloopAction(tool="bash", command="pgrep -x sleep | wc -l")).observation
        assert left.text == "0"  # the whole group was killed
        long = env.step(InloopAction(tool="bash", command="yes | head -c 1000000")).observation
        assert len(long.text) < 4200 and "cut ...]" in long.text
        last = env.step(InloopAction(tool="bash", command="true"))
        assert last.done and last.observation.stop == "turn_limit" and math.isfinite(last.reward)


def test_the_harness_decides_tools_sensors_and_clipping(serve: Callable[..., EnvServer]) -> None:
    harness = HarnessConfig(tools=("read", "write", "submit"), sensors=("syntax",), observation_chars=200)
    with InloopEnv(serve(harness=harness).url).sync() as env:
        first = env.reset(task_id="add").observation
        assert [t["function"]["name"] for t in first.tools] == ["read", "write", "submit"]
        assert first.budget["output_chars"] == 200
        assert env.step(InloopAction(tool="bash", command="ls")).observation.text.startswith("error: no tool 'bash'")
        broken = env.step(InloopAction(tool="write", path="calc.py", content="def add(:\n")).observation
        assert "syntax error: line 1" in broken.text
        env.step(InloopAction(tool="write", path="long.txt", content="x" * 5000))
        assert len(env.step(InloopAction(tool="read", path="long.txt")).observation.text) < 300


def test_admin_and_metrics(server: EnvServer) -> None:
    with InloopEnv(server.url) as env:
        env.reset(task_id="add")
        env.step(InloopAction(tool="read", path="calc.py"))
        listed = get(f"{server.url}/admin/sessions")
        (one,) = listed["sessions"]
        assert (one["task_id"], one["steps"], one["busy"], [one["lease"]]) == ("add", 1, False, held_leases())
        said = get(f"{server.url}/metrics")
        assert 'inloop_env_steps_total{tool="read"} 1\n' in said and "inloop_env_sessions 1\n" in said
        get(f"{server.url}/admin/sessions/{one['id']}", method="DELETE")
        until(lambda: not held_leases() and not server.sessions["sessions"])
        with pytest.raises(InloopError, match="lost"):
            env.step(InloopAction(tool="read", path="calc.py"))
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(f"{server.url}/admin/sessions/{one['id']}", method="DELETE")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_a_server_leaves_nothing(tasks: Path, ending: signal.Signals, serve: Any) -> None:
    """Ctrl-C gives all back; what a killed one leaves, the next one removes when it starts."""
    code = "import sys; from inloop.cli.main import main; sys.argv[0] = 'inloop'; main()"
    argv = [sys.executable, "-c", code, "env", "serve", "--tasks", str(tasks), "--port", "0", "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        with InloopEnv(told["url"], token=told["token"]).sync() as env:
            env.reset(task_id="add")
            env.step(InloopAction(tool="bash", command=f"exec -a left_{process.pid} sleep 300 &"))
            (held,) = held_leases(process.pid)
            process.send_signal(ending)
            assert process.wait(60) == (130 if ending is signal.SIGINT else -9)
        assert "Traceback" not in process.stderr.read()
    if ending is signal.SIGKILL:
        serve()
    assert held not in [one.id for one in lease.leases()]
    assert not processes(f"left_{process.pid}")


def test_what_cannot_be_served_is_told_at_once(tmp_path: Path, tasks: Path, server: EnvServer) -> None:
    def said(*argv: str) -> str:
        return str(CliRunner().invoke(app, ["serve", *argv]).exception)

    assert "task folders" in said("--tasks", str(tmp_path))
    assert "choose another --port" in said("--tasks", str(tasks), "--port", str(server.port))
    assert "choose one of them" in said("--tasks", str(tasks), "--no-auth", "--token", "t")
    assert "choose one of bubblewrap" in said("--tasks", str(tasks), "--sandbox", "jail")


def test_the_strangers_example(server: EnvServer) -> None:
    """Plain OpenEnv, nothing of ours."""
    path = EXAMPLES / "openenv_client.py"
    lines = [x for x in path.read_text().splitlines() if x.strip() and not x.startswith(("#", '"""'))]
    assert len(lines) <= 15 and "inloop" not in "".join(lines)
    run = subprocess.run([sys.executable, str(path), server.url], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "reward 1.0"
