"""The package layout, and OpenEnv's own validation of it and of a running server."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from openenv.validation import CheckStatus, Verdict
from typer.testing import CliRunner

from inloop.cli.env_ import app
from inloop.env.app import package_app
from inloop.env.package import init
from inloop.env.serve import EnvServer
from inloop.env.validation import validate_package, validate_url
from inloop.errors import InloopError

MISSING = "grader not implemented in this build"


@pytest.fixture(scope="module")
def package(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package") / "mine_env"
    init(folder, tasks, name="mine_env")
    return folder


def test_the_layout(package: Path) -> None:
    there = {p.relative_to(package).as_posix() for p in package.rglob("*") if p.is_file()}
    top = {"openenv.yaml", "models.py", "client.py", "README.md", "pyproject.toml", "server/app.py"}
    below = {"server/Dockerfile", "validation/runtime.json", "tasks/add/task.toml", "vendor/inloop/env/app.py"}
    assert top | below <= there
    block = yaml.safe_load((package / "openenv.yaml").read_text())["validation"]
    assert block["capabilities"]["declared_task_count"] == {"train": 2, "test": 1}
    assert block["resources"]["episode_timeout_s"] == 180 and block["reward"]["range"] == [0.0, 1.0]
    assert '"openenv<0.11,>=0.10",' in (package / "pyproject.toml").read_text()
    assert not any("@" in line and "@NAME@" in line for line in (package / "server/app.py").read_text().splitlines())
    assert "INLOOP_ENV_AUTH" not in (package / "server/Dockerfile").read_text()


def test_what_cannot_be_written(package: Path, tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(InloopError, match="not empty"):
        init(package, tasks)
    with pytest.raises(InloopError, match="ending in _env"):
        init(tmp_path / "new", tasks, name="Mine")
    init(tmp_path / "open", tasks, no_auth=True)
    assert "INLOOP_ENV_AUTH=none" in (tmp_path / "open/server/Dockerfile").read_text()


def test_its_modules_name_what_autoenv_looks_for(package: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "mine_env", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec and spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules["mine_env"] = module
    try:
        spec.loader.exec_module(module)
        client = sys.modules["mine_env.client"]
        assert module.MineEnv(base_url="http://127.0.0.1:1").wait_s == 0
        assert client.MineAction is module.MineAction and module.MineObservation().reward is None
    finally:
        for name in [n for n in sys.modules if n.partition(".")[0] == "mine_env"]:
            del sys.modules[name]


def test_openenv_validate_static(package: Path) -> None:
    """OpenEnv's own command."""
    from openenv.cli.__main__ import app as openenv_command

    run = CliRunner().invoke(openenv_command, ["validate", str(package), "--level", "static", "--json"])
    assert run.exit_code == 0 and json.loads(run.stdout)["verdict"] == "pass"


def test_the_commands(tasks: Path, tmp_path: Path, server: EnvServer) -> None:
    run = CliRunner()
    made = run.invoke(app, ["init", str(tmp_path / "p"), "--tasks", str(tasks), "--json"])
    assert made.exit_code == 0 and "openenv.yaml" in json.loads(made.stdout)["files"]
    seen = run.invoke(app, ["validate", str(tmp_path / "p"), "--level", "static"])
    assert seen.exit_code == 0 and "verdict: pass" in seen.stdout
    seen = run.invoke(app, ["validate", server.url])
    assert seen.exit_code == 0 and seen.stdout.count("pass ") == 6
    assert run.invoke(app, ["validate", "http://127.0.0.1:9", "--json"]).exit_code == 1
    wrong = run.invoke(app, ["validate", str(tasks)])
    assert isinstance(wrong.exception, InloopError) and "env init" in str(wrong.exception)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_runtime_graders_without_docker(package: Path) -> None:
    report = validate_package(package, "runtime")
    by_id = {r.check_id: r for r in report.results}
    for check in ("static.manifest", "runtime.startup", "runtime.reward_well_formed", "runtime.observation_schema",
                  "runtime.state_contract"):  # fmt: skip
        assert by_id[check].status is CheckStatus.PASS, by_id[check].evidence
    rest = [r for r in report.results if r.status is not CheckStatus.PASS]
    assert {r.status for r in rest} == {CheckStatus.SKIP} and report.verdict is Verdict.WARN
    assert [r.check_id for r in rest if MISSING not in r.evidence] == ["runtime.network_policy"]


@pytest.mark.slow
def test_a_package_serves_with_its_token_and_its_oracle_scores(package: Path) -> None:
    with pytest.raises(InloopError, match="INLOOP_ENV_TOKEN"):
        package_app(package, name="mine_env")
    with socket_on_loopback() as port:
        env = {**os.environ, "INLOOP_ENV_TOKEN": "t", "PYTHONPATH": f"{package}/vendor"}
        argv = [sys.executable, str(package / "server/app.py"), "--port", str(port)]
        with subprocess.Popen(argv, env=env, cwd=package) as served:
            try:
                answers(f"http://127.0.0.1:{port}/health")
                solve = ["sh", str(package / "validation/solve.sh"), f"http://127.0.0.1:{port}"]
                path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
                run = subprocess.run(solve, env={**env, "PATH": path}, capture_output=True, text=True)
                assert run.stdout == "reward 1.0\n", run.stderr
            finally:
                served.terminate()
                served.wait(30)


def test_openenv_validate_url(server: EnvServer, serve: Any) -> None:
    assert validate_url(server.url)["passed"]
    guarded = serve(token="secret")
    told = validate_url(guarded.url, "secret")
    assert told["passed"] and told["target"] == guarded.url
    assert len(told["criteria"]) == 6
    assert not validate_url(guarded.url, "wrong")["passed"]


def socket_on_loopback() -> Any:
    import contextlib
    import socket

    @contextlib.contextmanager
    def free() -> Any:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        yield port

    return free()


def answers(url: str) -> None:
    from env.conftest import until

    def ask() -> bool:
        try:
            urllib.request.urlopen(urllib.request.Request(url, headers={"X-Inloop-Token": "t"}), timeout=5).close()
        except OSError:
            return False
        return True

    until(ask, 120)
