"""An agent with a loop of its own, in the sandbox, behind the capture proxy: nothing between them is replaced."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.tiny_task import write_task

from inloop.engine.scripted import ScriptedEngine
from inloop.harness.capture import CaptureGateway
from inloop.harness.config import HarnessConfig
from inloop.harness.external import RELAY, External
from inloop.harness.mini_swe_agent import MiniSweAgent
from inloop.harness.policy import make_policy
from inloop.rollout.run import Rollouts, Work
from inloop.sandbox.base import CommandResult, SandboxSpec
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.tasks.task import Task, VerifySpec
from inloop.types import StopReason
from inloop.verify.verifier import Verifier

pytest.importorskip("openenv", reason="the env extra")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

AGENT = """
import json, subprocess, sys, urllib.request
url, key, task = sys.argv[1:4]
messages = [{"role": "system", "content": "Answer with one shell command."}, {"role": "user", "content": task}]
while True:
    body = json.dumps({"model": "any", "messages": messages, "temperature": 0.2, "max_tokens": 64}).encode()
    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", body, headers)) as answer:
        said = json.load(answer)["choices"][0]["message"]["content"]
    if said.startswith("done"):
        sys.exit(0)
    out = subprocess.run(["bash", "-c", said], capture_output=True, text=True)
    messages.append({"role": "assistant", "content": said})
    messages.append({"role": "user", "content": out.stdout + out.stderr or "(no output)"})
"""


@dataclass(frozen=True)
class ShellAgent:
    """The smallest agent there is: a loop around a shell, in twenty lines of the standard library."""

    name: str = "shell-agent"
    version: str = "1"

    def folders(self) -> tuple[Path, ...]:
        return ()

    def command(self, instruction: str, model: str, url: str, key: str) -> str:
        return "python3 -I -S -c " + " ".join(shlex.quote(x) for x in (AGENT, url, key, instruction))

    def stop(self, result: CommandResult) -> StopReason:
        return StopReason.SUBMITTED if result.ok else StopReason.AGENT_ERROR


@pytest.fixture
def task(tmp_path: Path) -> Task:
    root = tmp_path / "task"
    (root / "environment/workspace").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "environment/workspace/add.py").write_text("def add(a, b):\n    return a - b\n")
    (root / "tests/test_add.py").write_text(
        "from add import add\n\ndef test_1():\n    assert add(2, 3) == 5\n\ndef test_2():\n    assert add(0, 4) == 4\n"
    )
    verify = VerifySpec(
        mode="split",
        modules=("add",),
        tests=("test_add.py",),
        expected=("test_add.py::test_1", "test_add.py::test_2"),
    )
    return Task(id="add", root=root, instruction="add subtracts; fix add.py", verify=verify)


@pytest.fixture
def tokenizer(tiny_model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model)


def run(task: Task, script: list[str], tiny_model: Path, tokenizer: Any, agent: Any, **config: Any) -> Any:
    engine = ScriptedEngine(lambda turn, prompt: script[prompt.count("<|im_start|>assistant") - 1], tokenizer)
    harness = HarnessConfig(**{"max_turns": 8, **config})
    gateway = CaptureGateway(engine, tiny_model, temperature=1.0, max_turn_tokens=128)
    try:
        rollouts = Rollouts(
            policy=make_policy(engine, harness, tokenizer),
            config=harness,
            backend=Bubblewrap(),
            judge=Verifier(),
            external=External(agent=agent, gateway=gateway),
            retries=0,
        )
        return rollouts.run(Work(id="r", task=task, group_id="g", index=0, seed=1))
    finally:
        gateway.close()


FIX = "sed -i 's/a - b/a + b/' add.py"


def test_an_outside_agent_is_captured_and_verified(task: Task, tiny_model: Path, tokenizer: Any) -> None:
    done = run(task, ["cat add.py", FIX, "done"], tiny_model, tokenizer, ShellAgent())
    assert (done.stop, done.reward.value, done.agent["name"]) == (StopReason.SUBMITTED, 1.0, "shell-agent")
    assert done.counts["turns"] == 3 and done.counts["forks"] == 0
    (path,) = done.paths()
    sampled = [n for n in path if n.sampled]
    assert [n.message.text for n in sampled] == ["cat add.py", FIX, "done"]
    for node in sampled:
        assert tokenizer.decode(node.token_ids) == node.message.text + "<|im_end|>"
        assert len(node.logprobs) == len(node.token_ids)
    seen = tokenizer.decode([t for n in path for t in n.token_ids or ()])
    assert seen.startswith("<|im_start|>system\nAnswer with one shell command.") and "return a - b" in seen
    assert [n.message.role for n in path] == ["system", "user", "assistant"] + ["user", "assistant"] * 2


def test_captured_trajectories_make_samples(task: Task, tiny_model: Path, tokenizer: Any) -> None:
    from inloop.data.builder import Builder
    from inloop.data.mask import RL
    from inloop.train.receipt import witness

    done = run(task, [FIX, "done"], tiny_model, tokenizer, ShellAgent())
    builder = Builder(tokenizer=tokenizer, stop_ids=(tokenizer.eos_token_id,), config=RL)
    (sample,) = builder.take(done, 1.0)
    seen = witness(sample, done)
    assert seen.trained == seen.identical == sum(len(n.token_ids) for n in done.nodes if n.sampled)


def test_the_turn_budget_ends_an_agent_that_would_go_on(task: Task, tiny_model: Path, tokenizer: Any) -> None:
    done = run(task, ["true"] * 50, tiny_model, tokenizer, ShellAgent(), max_turns=3, wall_seconds=20.0)
    assert done.counts["turns"] == 3 and done.stop in (StopReason.TURN_LIMIT, StopReason.DEADLINE)


def test_the_deadline_ends_an_agent_that_hangs(task: Task, tiny_model: Path, tokenizer: Any) -> None:
    done = run(task, ["sleep 100", "done"], tiny_model, tokenizer, ShellAgent(), wall_seconds=4.0)
    assert done.stop is StopReason.DEADLINE and done.reward.value == 0.0 and done.counts["turns"] == 1


def test_an_agent_that_crashes_is_its_own_fault(task: Task, tiny_model: Path, tokenizer: Any) -> None:
    @dataclass(frozen=True)
    class Broken(ShellAgent):
        def command(self, instruction: str, model: str, url: str, key: str) -> str:
            return "exit 3"

    done = run(task, [], tiny_model, tokenizer, Broken())
    assert done.stop is StopReason.AGENT_ERROR and done.reward.value == 0.0 and not done.nodes


@pytest.fixture
def gateway(tiny_model: Path, tokenizer: Any) -> Iterator[CaptureGateway]:
    made = CaptureGateway(ScriptedEngine(["x"], tokenizer), tiny_model, temperature=1.0, max_turn_tokens=16)
    yield made
    made.close()


CALL = """
import http.client, json, socket, sys
method, path, key = sys.argv[1:4]
c = http.client.HTTPConnection("x")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect("/run/relay/api.sock")
body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}) if method == "POST" else None
c.request(method, path, body, {"Authorization": "Bearer " + key, "Content-Type": "application/json"})
print(c.getresponse().status)
"""


def test_the_agent_reaches_the_proxy_and_nothing_else(gateway: CaptureGateway, task: Task) -> None:
    key = gateway.open("r", max_calls=5)
    spec = SandboxSpec(workspace=task.workspace, mounts=((gateway.folder, RELAY),))
    sandbox = Bubblewrap().open(spec)
    try:

        def status(method: str, path: str, with_key: str) -> str:
            script = " ".join(shlex.quote(x) for x in (CALL, method, path, with_key))
            return sandbox.run(f"python3 -I -S -c {script}").stdout.strip()

        assert status("POST", "/v1/chat/completions", key) == "200"
        assert status("POST", "/v1/chat/completions", "guess") == "401"
        for method, path in (("GET", "/sessions"), ("GET", f"/sessions/{key}/rollout"), ("POST", "/sessions")):
            assert status(method, path, key) in ("401", "403"), path
        port = gateway._server.port
        reached = sandbox.run(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")
        assert "reached" not in reached.stdout
    finally:
        sandbox.close()
    assert gateway.finish(key).calls == 1


@pytest.mark.slow
@pytest.mark.agents
@pytest.mark.timeout(1200)
def test_mini_swe_agent_unmodified(task: Task, tiny_model: Path, tokenizer: Any) -> None:
    def block(command: str) -> str:
        return f"THOUGHT: next.\n\n```mswea_bash_command\n{command}\n```"

    script = [block("cat add.py"), block(FIX), block("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")]
    done = run(task, script, tiny_model, tokenizer, MiniSweAgent(), wall_seconds=300.0)
    assert (done.stop, done.reward.value) == (StopReason.SUBMITTED, 1.0), json.dumps(done.events)
    assert done.agent == {"name": "mini-swe-agent", "version": "2.4.6"} and done.counts["turns"] == 3


def test_collect_runs_an_outside_agent(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inloop.rollout import job
    from inloop.trace.store import TrajectoryStore

    monkeypatch.setitem(job.AGENTS, "shell-agent", ShellAgent)
    script = tmp_path / "script.json"
    script.write_text(json.dumps([FIX.replace("add.py", "calc.py"), "done"]))
    write_task(tmp_path / "tasks")
    sets = [
        f'engine.model="{script}"',
        f'engine.tokenizer="{tiny_model}"',
        'engine.kind="scripted"',
        'agent="shell-agent"',
    ]
    settings = job.settings_from(None, None, [*sets, "harness.max_turns=4", "plan.k=1"])
    summary = job.run_collect(tmp_path / "tasks", tmp_path / "run", settings)
    assert summary.wanted == 1 and not (tmp_path / "run/faults.jsonl").exists()
    done = list(TrajectoryStore(tmp_path / "run"))
    assert [(t.agent["name"], t.reward.value) for t in done] == [("shell-agent", 1.0)]
    assert all(n.token_ids and n.logprobs for t in done for n in t.nodes if n.sampled)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (['agent="nobody"'], "unknown agent"),
        (['agent="mini-swe-agent"', "processes=2"], "of this process"),
        (['agent="mini-swe-agent"', 'engine.kind="expert"'], "speaks messages"),
    ],
)
def test_agents_that_cannot_be_run(sets: list[str], said: str, tmp_path: Path) -> None:
    from inloop.errors import ConfigError
    from inloop.rollout import job

    script = tmp_path / "script.json"
    script.write_text("[]")
    write_task(tmp_path / "tasks")
    base = ['engine.kind="scripted"', f'engine.model="{script}"']
    with pytest.raises(ConfigError, match=said):
        job.run_collect(tmp_path / "tasks", tmp_path / "run", job.settings_from(None, None, [*base, *sets]))
