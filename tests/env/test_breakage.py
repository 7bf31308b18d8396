"""What breaks a session, one test each: what a user now gets, and that neither a lease nor a process is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from env.conftest import held_leases, processes, until
from openenv.core import GenericEnvClient

from inloop.env.client import InloopEnv, ServerFull, SessionLost
from inloop.env.models import InloopAction
from inloop.env.serve import EnvServer
from inloop.errors import InloopError

MARK = f"held_{os.getpid()}"
HOLD = f"exec -a {MARK} sleep 250"
CLIENT = """
import json, sys, time
from websockets.sync.client import connect
with connect(sys.argv[1].replace("http", "ws") + "/ws") as ws:
    ws.send(json.dumps({"type": "reset", "data": {"task_id": "add"}}))
    ws.recv()
    print("ready", flush=True)
    if sys.argv[2] == "busy":
        action = {"tool": "bash", "command": sys.argv[3]}
        ws.send(json.dumps({"type": "step", "data": action}))
    time.sleep(250)
"""
READ = InloopAction(tool="read", path="calc.py")


@pytest.fixture
def client_process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A client in a process of its own, with an episode open."""
    started: list[subprocess.Popen[str]] = []

    def start(url: str, what: str = "idle", code: str = CLIENT) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", code, url, what, HOLD], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout and process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def clean(server: EnvServer) -> bool:
    return not server.sessions["sessions"] and not held_leases() and not commands()


def commands() -> list[int]:
    """What agents started and nobody should still run."""
    return processes(MARK)


def busy(server: EnvServer) -> Any:
    return [s for s in server.sessions["sessions"] if s["busy"]]


def test_lost_socket(server: EnvServer) -> None:
    """Ours says that the episode is lost, until a reset; a plain client is answered 'no episode', never a fresh one."""
    env = InloopEnv(server.url).sync()
    env.reset(task_id="add", episode_id="first")
    env._run(env.async_client._ws.close())
    for _ in range(2):
        with pytest.raises(SessionLost, match="lost"):
            env.step(READ)
    until(lambda: clean(server))
    env.reset(task_id="add", episode_id="second")
    assert env.step(READ).observation.text and env.state().episode_id == "second"
    env.close()
    plain = GenericEnvClient(server.url).sync()
    plain.reset(task_id="add")
    plain._run(plain.async_client._ws.close())
    with pytest.raises(RuntimeError, match="no episode: call reset first"):
        plain.step({"tool": "read", "path": "calc.py"})
    plain.close()


def test_a_closed_client_gives_its_lease_back(server: EnvServer) -> None:
    env = InloopEnv(server.url).sync()
    env.reset(task_id="add")
    assert held_leases()
    env.close()
    until(lambda: clean(server))


def test_client_killed_while_idle(server: EnvServer, client_process: Any) -> None:
    process = client_process(server.url)
    assert held_leases()
    process.kill()
    until(lambda: clean(server))


def test_client_killed_in_mid_step(server: EnvServer, client_process: Any) -> None:
    """The command ends with its client, not with its deadline."""
    process = client_process(server.url, "busy")
    until(lambda: busy(server) and commands())
    process.kill()
    until(lambda: clean(server))
    assert server.server.hall.sessions.counts["abandoned_total", ""] == 1


def test_frozen_client(serve: Any, client_process: Any) -> None:
    """A client that answers no ping is gone, idle or in mid-step."""
    server = serve(ping_seconds=0.5)
    processes = [client_process(server.url), client_process(server.url, "busy")]
    until(lambda: len(held_leases()) == 2 and commands())
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    until(lambda: clean(server))
    for process in processes:
        os.kill(process.pid, signal.SIGCONT)


def test_two_calls_in_flight(server: EnvServer) -> None:
    """They wait for each other, and each gets its own answer; from tasks of one loop and from threads."""

    async def gathered() -> list[str]:
        async with InloopEnv(server.url) as env:
            await env.reset(task_id="add")
            asked = [env.step(InloopAction(tool="bash", command=f"sleep 0.0{9 - i}; echo {i}")) for i in range(8)]
            return [(await a).observation.text for a in [asyncio.ensure_future(_awaited(x)) for x in asked]]

    assert asyncio.run(gathered()) == [str(i) for i in range(8)]
    env = InloopEnv(server.url).sync()
    env.reset(task_id="add")
    said: dict[int, str] = {}

    def ask(i: int) -> None:
        said[i] = env.step(InloopAction(tool="bash", command=f"echo {i}")).observation.text

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {i: str(i) for i in range(8)}
    env.close()


async def _awaited(call: Any) -> Any:
    return await call


def test_capacity_reached(serve: Any) -> None:
    """Told at once with the fix; nothing is started, and a freed session is taken."""
    server = serve(max_sessions=1)
    first, second = InloopEnv(server.url).sync(), InloopEnv(server.url).sync()
    first.reset(task_id="add")
    with pytest.raises(ServerFull, match="wait_s"):
        second.reset(task_id="add")
    assert len(held_leases()) == 1 and server.server.hall.sessions.counts["refused_total", ""] == 1
    first.close()
    until(lambda: clean(server))
    assert second.reset(task_id="add2").observation.task_id == "add2"
    second.close()


def test_oversize_messages(serve: Any) -> None:
    """Ours is told before anything is sent and goes on; a plain client's session ends and leaves nothing."""
    server = serve(message_bytes=1 << 20)
    with InloopEnv(server.url).sync() as env:
        env.reset(task_id="add")
        with pytest.raises(InloopError, match="the server takes 1048576"):
            env.step(InloopAction(tool="write", path="big.txt", content="x" * (1 << 20)))
        for _ in range(3):
            assert env.step(InloopAction(tool="write", path="part.txt", content="x" * (1 << 19))).reward == 0.0
        long = env.step(InloopAction(tool="bash", command="cat part.txt part.txt part.txt")).observation
        assert len(long.text) < 5000
    plain = GenericEnvClient(server.url).sync()
    plain.reset(task_id="add")
    with pytest.raises(Exception, match=r"1009|no episode|too big"):
        plain.step({"tool": "write", "path": "big.txt", "content": "x" * (1 << 20)})
    until(lambda: not server.sessions["sessions"])
    plain.close()
    until(lambda: clean(server))


def test_client_timeout(server: EnvServer) -> None:
    """The client that gives up loses the episode and is told so; its command ends and its session is free."""
    env = InloopEnv(server.url, message_timeout_s=1.0).sync()
    env.reset(task_id="add")
    with pytest.raises(SessionLost, match=r"no answer within 1 s"):
        env.step(InloopAction(tool="bash", command=HOLD))
    until(lambda: clean(server))
    with pytest.raises(SessionLost):
        env.step(READ)
    env.close()


def test_a_caller_that_gives_up(server: EnvServer) -> None:
    async def impatient() -> None:
        async with InloopEnv(server.url) as env:
            await env.reset(task_id="add")
            slow = env.step(InloopAction(tool="bash", command=HOLD))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(_awaited(slow), 0.3)
            with pytest.raises(SessionLost, match="gave up"):
                await env.step(READ)

    asyncio.run(impatient())
    until(lambda: clean(server))


def test_step_and_episode_deadlines(serve: Any, tmp_path: Path) -> None:
    """The server ends the command, then the episode, and judges what is there; the sandbox goes without a step."""
    from harness.tiny_task import write_task

    toml = write_task(tmp_path / "short", "short").root / "task.toml"
    toml.write_text(toml.read_text().replace("timeout_sec = 60\n", "timeout_sec = 3\n"))
    server = serve(tasks=tmp_path / "short", session_timeout=1.0)
    with InloopEnv(server.url).sync() as env:
        env.reset(task_id="short")
        env.step(InloopAction(tool="edit", path="calc.py", old="a - b", new="a + b"))
        last = env.step(InloopAction(tool="bash", command=HOLD))
        assert "over the wall limit" in last.observation.text
        assert (last.done, last.observation.stop, last.reward) == (True, "deadline", 1.0)
        env.reset(task_id="short")
        until(lambda: not held_leases())  # its client thinks for too long
        assert (late := env.step(READ)).done and late.observation.stop == "deadline" and late.reward == 0.0
        assert server.sessions["open"] == 1  # the session is still its client's


def test_reaper(serve: Any) -> None:
    """What no socket holds is ended; a connected client may think for as long as it likes."""
    server = serve(session_timeout=1.0)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create", "params": {}}).encode()
    head = {"Content-Type": "application/json"}
    with InloopEnv(server.url).sync() as env:
        env.reset(task_id="add")
        made = []
        for _ in range(3):
            with urllib.request.urlopen(urllib.request.Request(f"{server.url}/mcp", body, head), timeout=30) as answer:
                made.append(json.load(answer)["result"]["session_id"])
        assert server.sessions["open"] == 4
        until(lambda: server.sessions["open"] == 1)
        time.sleep(1.5)
        assert env.step(READ).observation.text.startswith("def add")
        assert server.server.hall.sessions.counts["reaped_total", ""] == 3
    assert server.server._sessions == {} or until(lambda: not server.server._sessions)


def test_bad_frames(server: EnvServer) -> None:
    """One that is no request ends its session and nothing else; what can't be read is told."""
    from websockets.sync.client import connect

    with connect(server.url.replace("http", "ws") + "/ws") as ws:
        ws.send("{")
        assert json.loads(ws.recv())["data"]["code"] == "INVALID_JSON"
        ws.send('{"type": "dance"}')
        assert json.loads(ws.recv())["data"]["code"] == "UNKNOWN_TYPE"
        ws.send('{"type": "step", "data": {"tool": "bash", "command": 3}}')
        assert json.loads(ws.recv())["data"]["code"] == "VALIDATION_ERROR"
        ws.send("[1, 2]")
        assert json.loads(ws.recv())["data"]["code"] == "SESSION_ERROR"
    until(lambda: clean(server))


def test_the_server_ends_while_clients_work(tasks: Path, client_process: Any) -> None:
    from inloop.env.app import EnvSettings

    with EnvServer(EnvSettings(tasks=tasks, port=0, max_sessions=4)) as server:
        client_process(server.url, "busy")
        until(lambda: busy(server) and commands())
    assert clean(server)
