"""The environment server beside an OpenEnv no-op environment, in the same run and by the same clients.

    .venv/bin/python benchmarks/openenv.py [--seconds 8] [--many 200]

Each server runs in a process of its own, and so do the clients: plain WebSockets that speak OpenEnv's protocol, one
call in flight each. Ours reads a file of the workspace through the sandbox. Prints p50, p95 and steps/s at 20 and
`--many` sessions, sessions opened and closed a second, and the memory a session adds."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# this file must not be found for the package that it measures
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

STEPS = {"inloop": {"tool": "read", "path": "calc.py"}, "no-op": {"tool": "read", "path": "calc.py"}}
RESETS = {"inloop": {"task_id": "add"}, "no-op": {}}


def serve_inloop(ready: Any, tasks: str, most: int) -> None:
    from inloop.env.app import EnvSettings
    from inloop.env.serve import EnvServer

    settings = EnvSettings(tasks=Path(tasks), port=0, max_sessions=most, max_steps=10**9)
    with EnvServer(settings) as server:
        ready.send(server.port)
        with contextlib.suppress(EOFError):
            ready.recv()  # until the starter hangs up


def serve_noop(ready: Any, tasks: str, most: int) -> None:
    """OpenEnv as it is: a typed environment with our action and observation, that does nothing."""
    import threading

    import uvicorn
    from openenv.core.env_server.http_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import State

    from inloop.engine.server import bind
    from inloop.env.models import InloopAction, InloopObservation

    class Nothing(Environment):  # type: ignore[misc,type-arg]
        SUPPORTS_CONCURRENT_SESSIONS = True
        state = State()

        def reset(self, seed: Any = None, episode_id: Any = None, **kw: Any) -> InloopObservation:
            return InloopObservation(text="ready")

        def step(self, action: InloopAction, timeout_s: Any = None, **kw: Any) -> InloopObservation:
            return InloopObservation(text="def add(a, b):\n    return a - b", reward=0.0)

    app = create_fastapi_app(Nothing, InloopAction, InloopObservation, max_concurrent_envs=most)
    sock = bind("127.0.0.1", 0)
    plain = {"log_level": "warning", "access_log": False, "ws_per_message_deflate": False}  # as ours is served
    server = uvicorn.Server(uvicorn.Config(app, **plain))  # type: ignore[arg-type]
    threading.Thread(target=server.run, args=([sock],), daemon=True).start()
    ready.send(sock.getsockname()[1])
    with contextlib.suppress(EOFError):
        ready.recv()
    server.should_exit = True


class Served:
    def __init__(self, name: str, tasks: str, most: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.name = name
        self._pipe, theirs = context.Pipe()
        target = serve_inloop if name == "inloop" else serve_noop
        self.process = context.Process(target=target, args=(theirs, tasks, most))
        self.process.start()
        theirs.close()
        self.url = f"ws://127.0.0.1:{self._pipe.recv()}/ws"

    def memory_mb(self) -> float:
        """Proportional memory of the server and all that it has started."""
        return sum(_pss(pid) for pid in _tree(self.process.pid or 0)) / 1024

    def cpu_seconds(self) -> float:
        """Of the server process: what a busy machine does not change."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._pipe.close()
        self.process.join(60)


def _tree(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            if folder.name.isdigit():
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(folder.name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += parents.get(pid, [])
    return found


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


async def ask(ws: Any, kind: str, data: dict[str, Any]) -> dict[str, Any]:
    await ws.send(json.dumps({"type": kind, "data": data}))
    answer: dict[str, Any] = json.loads(await ws.recv())
    if answer["type"] == "error":
        raise RuntimeError(answer["data"]["message"])
    return answer["data"]


async def load(served: Served, sessions: int, seconds: float) -> dict[str, float]:
    from websockets.asyncio.client import connect

    before = served.memory_mb()
    async with contextlib.AsyncExitStack() as stack:
        began = time.monotonic()
        opened = [connect(served.url, proxy=None, open_timeout=120, ping_interval=None) for _ in range(sessions)]
        sockets = await asyncio.gather(*(stack.enter_async_context(c) for c in opened))
        await asyncio.gather(*(ask(ws, "reset", RESETS[served.name]) for ws in sockets))
        starting = time.monotonic() - began
        held = served.memory_mb()
        end, times, spent = time.monotonic() + seconds, list[float](), served.cpu_seconds()

        async def work(ws: Any) -> None:
            while time.monotonic() < end:
                at = time.monotonic()
                await ask(ws, "step", STEPS[served.name])
                times.append(time.monotonic() - at)

        await asyncio.gather(*(work(ws) for ws in sockets))
        spent = served.cpu_seconds() - spent
    cuts = statistics.quantiles(times, n=100)
    return {
        "p50_ms": cuts[49] * 1e3,
        "p95_ms": cuts[94] * 1e3,
        "steps_per_second": len(times) / seconds,
        "server_cpu_us_per_step": spent / len(times) * 1e6,
        "starts_per_second": sessions / starting,
        "mb_per_session": (held - before) / sessions,
    }


async def churn(served: Served, seconds: float, width: int = 8) -> float:
    """Sessions a second: connect, reset, close, `width` at once."""
    from websockets.asyncio.client import connect

    end, done = time.monotonic() + seconds, 0

    async def one() -> None:
        nonlocal done
        while time.monotonic() < end:
            async with connect(served.url, proxy=None, open_timeout=120, ping_interval=None) as ws:
                await ask(ws, "reset", RESETS[served.name])
            done += 1

    await asyncio.gather(*(one() for _ in range(width)))
    return done / seconds


@contextlib.contextmanager
def both(most: int) -> Iterator[list[Served]]:
    from harness.tiny_task import write_task

    with tempfile.TemporaryDirectory() as folder:
        write_task(Path(folder) / "tasks")
        served = [Served(name, str(Path(folder) / "tasks"), most) for name in ("no-op", "inloop")]
        try:
            yield served
        finally:
            for one in served:
                one.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--many", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    told: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    with both(args.many + 16) as servers:
        for sessions in (20, args.many):
            for _ in range(args.rounds if sessions == 20 else 1):  # in turn, so that a busy machine is so for both
                for served in servers:
                    found = asyncio.run(load(served, sessions, args.seconds))
                    told.setdefault(f"{served.name} {sessions}", []).append(found)
        for served in servers:
            told[f"{served.name} sessions_per_second"] = round(asyncio.run(churn(served, args.seconds)), 1)
    for name in [n for n in told if isinstance(told[n], list)]:
        rounds = told[name]
        told[name] = {k: round(statistics.median(r[k] for r in rounds), 3) for k in rounds[0]}
    for sessions in (20, args.many):
        ours, theirs = told[f"inloop {sessions}"], told[f"no-op {sessions}"]
        told[f"share_of_noop {sessions}"] = round(ours["steps_per_second"] / theirs["steps_per_second"], 3)
        spent = theirs["server_cpu_us_per_step"] / ours["server_cpu_us_per_step"]
        told[f"share_of_noop_by_cpu {sessions}"] = round(spent, 3)
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
