"""TRL's trainers over a served taskset, unchanged: the tools class, both kinds of sessions, and real steps."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from env.conftest import FIX, held_leases, until

pytest.importorskip("trl", reason="the train extra")

from openenv.core.harness import MCPHarnessAdapter, TrainableSession
from openenv.core.harness.rollout import ModelStepResult
from openenv.core.llm_client import LLMResponse, ToolCall

from inloop.engine.scripted import ScriptedEngine
from inloop.engine.server import EngineServer
from inloop.env.client import InloopEnv
from inloop.env.harness_sessions import AgentSessionFactory, SessionFactory
from inloop.env.serve import EnvServer
from inloop.env.trl_tools import EnvironmentFactory, EpisodeOver, rows
from inloop.errors import InloopError
from inloop.harness.capture import _submitting

EXAMPLES = Path(__file__).parents[2] / "examples"
PROMPT = [{"role": "user", "content": "Work.", "task_id": "add"}]
EDIT = {k: v for k, v in FIX.items() if k != "tool"}


def test_the_tools_class_is_what_trl_asks_for(server: EnvServer) -> None:
    from transformers.utils import get_json_schema

    factory = pickle.loads(pickle.dumps(EnvironmentFactory(url=server.url)))
    env = factory()
    tools = {n for n, _ in inspect.getmembers(type(env), inspect.isfunction) if not n.startswith("_")}
    assert tools - {"reset", "get_reward"} == {"bash", "read", "edit", "write", "test", "submit"}
    for name in tools - {"reset", "get_reward"}:
        told = get_json_schema(getattr(env, name))["function"]
        assert told["description"] and all("description" in p for p in told["parameters"]["properties"].values())
    few = EnvironmentFactory(url=server.url, tools=("read", "submit"))()
    assert not hasattr(few, "bash") and type(few).__name__ == "InloopTools"


def test_an_episode_through_the_tools_class(server: EnvServer) -> None:
    env = EnvironmentFactory(url=server.url)()
    with pytest.raises(InloopError, match="names no task"):
        env.reset(prompt=[])
    assert env.reset(prompt=[], task_id="add").startswith("calc.py")
    assert "return a - b" in env.read("calc.py")
    assert env.read("calc.py", start=2) == "    return a - b"
    assert env.edit(**EDIT) == "ok"
    assert env.submit() == "submitted"
    assert env.get_reward() == 1.0
    with pytest.raises(EpisodeOver):
        env.bash("ls")
    env.reset(split="train", index=1)  # TRL pools the objects
    assert env.get_reward() == 0.0  # handed in for a model that did not
    env.reset(task_id="add")
    (listed,) = server.sessions["sessions"]
    server.server.hall.sessions.all()[listed["id"]].episode.sandbox.close()
    assert "sandbox" in env.bash("true") and env.get_reward() is None  # a fault is no 0
    del env
    until(lambda: not server.sessions["sessions"])


def test_white_box_sessions(server: EnvServer) -> None:
    """OpenEnv's own adapter drives one; the trainer's sampling is a script here."""
    turns = [("edit", EDIT), ("test", {}), ("shout", {"loud": 1}), ("submit", {})]

    def step(messages: list[Any], tools: list[Any], sampling: dict[str, Any]) -> ModelStepResult:
        assert [t.name for t in tools][:2] == ["bash", "read"]
        name, arguments = turns[sum(m["role"] == "assistant" for m in messages)]
        return ModelStepResult(
            response=LLMResponse(content="", tool_calls=[ToolCall(id="1", name=name, args=arguments)])
        )

    session = SessionFactory(url=server.url).create(PROMPT, seed=3, episode_id="e")
    assert session.initial_messages() == [{"role": "user", "content": f"Work.\n\n{session.first.text}"}]
    done = MCPHarnessAdapter().run_white_box(step, session)
    assert done.done and [e.result.error is None for e in done.tool_trace] == [True, True, False, True]
    told = session.verify(done.messages)
    assert (told.env_reward, told.metrics["tool_calls"], told.artifacts["verdict"]) == (1.0, 4, "passed")
    session.close()
    session.close()
    until(lambda: not server.sessions["sessions"])
    with pytest.raises(InloopError, match="names no task"):
        SessionFactory(url=server.url).create([{"role": "user", "content": "?"}])


def test_a_session_closed_meanwhile_is_unscorable(server: EnvServer) -> None:
    session = SessionFactory(url=server.url).create(PROMPT)
    session.close()
    assert session.verify([]).env_reward is None
    until(lambda: not held_leases() and not server.sessions["sessions"])


@pytest.fixture
def engine(tiny_model: Path) -> Iterator[Callable[[list[str]], str]]:
    """Serve an engine that says what it is told to, as token ids, under a template that shows tools."""
    from transformers import AutoTokenizer
    from trl.chat_template_utils import qwen2_5_chat_template

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    servers: list[EngineServer] = []

    def start(turns: list[str]) -> str:
        scripted = ScriptedEngine(lambda turn, prompt: turns[prompt.count("<|im_start|>assistant") - 1], tokenizer)
        served = EngineServer(_submitting(scripted, tiny_model), chat_template=qwen2_5_chat_template)
        servers.append(served.start())
        return served.url

    yield start
    for served in servers:
        served.close()


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def agents(server: EnvServer, engine_url: str, **kw: Any) -> AgentSessionFactory:
    with_model = {"llm_url": engine_url, "model": "scripted", "max_turn_tokens": 400, **kw}
    return partial(AgentSessionFactory, url=server.url, **with_model)(sampling={"temperature": 1.0, "top_p": 1.0})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_loop_owning_sessions(server: EnvServer, engine: Any, tiny_model: Path) -> None:
    """The agent works by itself; each call's ids are the engine's, and the prompt of one holds the one before."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    turns = [call("edit", **EDIT), call("submit")]
    factory = agents(server, engine(turns))
    try:
        session = factory.create(PROMPT)
        assert isinstance(session, TrainableSession)
        assert session.wait_for_completion() == 0
        trace = session.fetch_training_trace()
        said = [tokenizer.decode(t.completion_token_ids).removesuffix("<|im_end|>") for t in trace.turns]
        assert said == turns
        for turn in trace.turns:
            before, sampled = len(turn.prompt_token_ids), len(turn.completion_token_ids)
            assert turn.loss_mask == [0] * before + [1] * sampled and len(turn.per_token_logps) == sampled
        first, second = trace.turns
        whole = first.prompt_token_ids + first.completion_token_ids
        assert second.prompt_token_ids[: len(whole)] == whole
        assert session.verify([]).env_reward == 1.0
        session.close()
    finally:
        factory.close()
    until(lambda: not server.sessions["sessions"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_agent_that_fails_or_does_not_end(server: EnvServer, engine: Any) -> None:
    import threading

    held = threading.Event()
    factory = agents(server, engine([]), agent=lambda endpoint, session: held.wait(60))
    try:
        slow = factory.create(PROMPT)
        with pytest.raises(TimeoutError):
            slow.wait_for_completion(0.05)
        assert slow.fetch_training_trace().turns == [] and slow.verify([]).env_reward == 0.0
        slow.close()
        factory.agent = lambda endpoint, session: 1 / 0  # type: ignore[assignment]
        broken = factory.create(PROMPT)
        with pytest.raises(ZeroDivisionError):
            broken.wait_for_completion()
        broken.close()
    finally:
        held.set()
        factory.close()


def test_rows_for_trl(server: EnvServer) -> None:
    made = rows(server.url, "train", head="Do it.")
    assert [r["task_id"] for r in made] == ["add", "add2"]
    assert made[0]["prompt"] == [{"role": "user", "content": "Do it.", "task_id": "add"}]


def example(name: str, server: EnvServer, model: Path, out: Path, *more: str) -> str:
    keep = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    argv = [sys.executable, str(EXAMPLES / name), "--url", server.url, "--token", "t", "--model", str(model)]
    argv += ["--out", str(out), "--tokens", "24", *more]
    run = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **keep})
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["trl_grpo.py", "trl_async_harness.py"])
def test_two_real_steps(name: str, serve: Any, tiny_model: Path, tmp_path: Path) -> None:
    """A tiny model can't call tools; that the rest is real shows in the episodes that the server judged."""
    server = serve(token="t")
    said = example(name, server, tiny_model, tmp_path)
    steps = [line for line in said.splitlines() if line.startswith("step ")]
    assert [line.partition(":")[0] for line in steps] == ["step 1", "step 2"]
    if name == "trl_async_harness.py":
        assert all("'ratio': 1.0," in line for line in steps)
    assert server.server.hall.sessions.counts["verdicts_total", "failed"] >= 4
    until(lambda: not server.sessions["sessions"] and not held_leases())


def test_the_client_waits_for_a_free_session(serve: Any) -> None:
    server = serve(max_sessions=1)
    first = InloopEnv(server.url).sync()
    first.reset(task_id="add")
    import threading

    threading.Timer(0.5, first.close).start()
    with InloopEnv(server.url, wait_s=20).sync() as second:
        assert second.reset(task_id="add2").observation.task_id == "add2"
