"""What is relied on of OpenEnv 0.10 and TRL 1.16 beyond their documented surface: a change fails here first."""

from __future__ import annotations

import inspect

import pytest
from openenv.core.env_client import EnvClient
from openenv.core.env_server.http_server import HTTPEnvServer
from openenv.core.env_server.interfaces import Environment
from openenv.core.harness.capture.server import create_app


def test_openenvs_server() -> None:
    for name, parameters in (("_create_session", []), ("_destroy_session", ["session_id"])):
        method = getattr(HTTPEnvServer, name)
        assert inspect.iscoroutinefunction(method)
        assert list(inspect.signature(method).parameters)[1:] == parameters
    source = inspect.getsource(HTTPEnvServer)
    assert "self._session_websocket_attachments: set[str]" in source
    assert source.count("overrides_method(") >= 5  # our async step and reset are what is called
    assert {"reset_async", "step_async"} <= set(dir(Environment))
    for field in ("mcp_server", "mcp_client"):
        assert f'getattr(_env, "{field}", None)' in source


def test_openenvs_client() -> None:
    for name in ("_send_and_receive", "_reset_async", "_disconnect_async", "_connect_async"):
        assert inspect.iscoroutinefunction(getattr(EnvClient, name))
    source = inspect.getsource(EnvClient)
    for field in ("_ws", "_base_url", "_headers", "_message_timeout"):
        assert f"self.{field}" in source


def test_the_capture_proxy() -> None:
    known = inspect.signature(create_app).parameters
    assert {"llm_url", "model", "api_key", "max_output_tokens", "admin_key"} <= set(known)
    state = create_app(llm_url="http://127.0.0.1:1/v1", model="m").state
    assert hasattr(state.registry, "create") and hasattr(state.inference, "aclose")


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::DeprecationWarning")
def test_trls_harness_worker() -> None:
    pytest.importorskip("trl", reason="the train extra")
    pytest.importorskip("aiohttp", reason="the env extra")
    from inloop.train.trl_async import harness_worker, worker_module

    asked = worker_module.is_vllm_available
    worker = harness_worker(model_name="m", harness_session_factory=dict)
    assert type(worker).__name__ == "HarnessRolloutWorker" and worker._loop_kwargs["model_name"] == "m"
    assert worker_module.is_vllm_available is asked
