"""A vLLM server, or anything with its surface: token ids in, token ids and processed logprobs out."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import httpx

from inloop.engine.base import Completion, ContextFull, EngineInfo, Sampling
from inloop.errors import EngineFault, InloopError

PROCESSED = "processed_logprobs"
KEPT_ADAPTERS = 2
"""The present policy and the one before, which requests in flight may still name."""
LAUNCH_FLAGS = ("--logprobs-mode", PROCESSED, "--return-tokens-as-token-ids")
ADAPTER_FLAGS = ("--enable-lora", "--max-loras", "2", "--max-lora-rank", "64")
LAUNCH_ENV = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1", "VLLM_NO_USAGE_STATS": "1"}


class VllmEngine:
    """Token form over HTTP; safe to call from many threads, and picklable.

    New weights go in as LoRA adapters, one name a version; every request names the present one."""

    def __init__(self, url: str, *, token: str | None, info: EngineInfo, server: Launched | None = None) -> None:
        self.url, self._token, self._info, self._server = url.rstrip("/"), token, info, server
        self._model, self._version = info.model, info.weight_version
        self._adapters: deque[str] = deque()
        self._lock = threading.Lock()
        self._http = client(self.url, token)

    @classmethod
    def attach(cls, url: str, *, token: str | None = None, trainable: bool = True) -> VllmEngine:
        """Raises EngineFault when nothing answers, InloopError when its logprobs can't be trained with."""
        with client(url, token) as http:
            info = read_info(http)
        if trainable and not info.trainable:
            raise InloopError(
                f"{url} gives {info.logprobs_mode}, not the logprobs that a trainer computes",
                fix=f"start vLLM with --logprobs-mode {PROCESSED} and VLLM_SERVER_DEV_MODE=1",
            )
        return cls(url, token=token, info=info)

    @classmethod
    def launch(cls, model: str | Path, *, python: str, args: Sequence[str] = (), seconds: float = 600.0) -> VllmEngine:
        """Start vLLM from another environment's `python`, on loopback; `close` ends it."""
        server = Launched(model, python=python, args=args)
        try:
            server.wait_ready(seconds)
            engine = cls.attach(server.url)
        except BaseException:
            server.close()
            raise
        engine._server = server
        return engine

    def info(self) -> EngineInfo:
        fields = {f: getattr(self._info, f) for f in self._info.__slots__}
        return EngineInfo(**{**fields, "weight_version": self._version})

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling, *, conversation: str | None = None) -> Completion:
        room = self._info.max_model_len - len(prompt_ids)
        if room < 1:
            raise ContextFull(len(prompt_ids), self._info.max_model_len)
        began, version = time.monotonic(), self._version
        body = request_body(list(prompt_ids), sampling, min(sampling.max_tokens, room))
        try:
            got = self._post("/v1/completions", {**body, "model": self._model})
        except UnknownModel:  # another process swapped adapters
            self._refresh()
            got = self._post("/v1/completions", {**body, "model": self._model})
        return read_completion(got, version, time.monotonic() - began)

    def forget(self, conversation: str) -> None:
        """vLLM evicts its prefix cache by itself."""

    def load_weights(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        raise InloopError(
            "whole weights do not travel over HTTP", fix="train a LoRA adapter, or use TRL's NCCL weight transfer"
        )

    def load_adapter(self, folder: Path, version: int) -> None:
        name = f"inloop-v{version}"
        body = {"lora_name": name, "lora_path": str(Path(folder).resolve())}
        with self._lock:
            self._post("/v1/load_lora_adapter", body)
            self._adapters.append(name)
            self._model, self._version = name, version
            while len(self._adapters) > KEPT_ADAPTERS:
                self._unload(self._adapters.popleft())

    def pause(self) -> None:
        self._post("/pause?mode=keep", None)

    def resume(self) -> None:
        self._post("/resume", None)

    def close(self) -> None:
        self._http.close()
        if self._server is not None:
            self._server.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "token": self._token, "info": self.info(), "model": self._model}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["url"], token=state["token"], info=state["info"])  # type: ignore[misc]
        self._model = state["model"]

    def _unload(self, name: str) -> None:
        with contextlib.suppress(UnknownModel):  # a server that keeps one adapter dropped it when the next came
            self._post("/v1/unload_lora_adapter", {"lora_name": name})

    def _refresh(self) -> None:
        names = [m["id"] for m in get(self._http, "/v1/models")["data"]]
        ours = [n for n in names if n.startswith("inloop-v")]
        self._model = max(ours, key=lambda n: int(n.removeprefix("inloop-v")), default=names[0])
        self._version = int(self._model.removeprefix("inloop-v")) if ours else self._version

    def _post(self, path: str, body: dict[str, Any] | None) -> Any:
        try:
            return checked(self._http.post(path, json=body))
        except httpx.HTTPError as error:
            raise EngineFault(f"{self.url}{path}: {error!r}", fix="see whether the server still runs") from error


class UnknownModel(InloopError):
    """The server does not know the model or adapter that was named."""


class Launched:
    """A vLLM process that we started."""

    def __init__(self, model: str | Path, *, python: str, args: Sequence[str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
        command += ["--host", "127.0.0.1", "--port", str(port), *LAUNCH_FLAGS, *args]
        try:
            self._process = subprocess.Popen(
                command, env={**os.environ, **LAUNCH_ENV}, stdout=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            raise InloopError(f"can't run {python}: {error}", fix="give the python of vLLM's environment") from error

    def wait_ready(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise EngineFault(f"vLLM ended with exit code {self._process.returncode}", fix="read its output above")
            try:
                if httpx.get(f"{self.url}/health", timeout=5).is_success:
                    return
            except httpx.HTTPError:
                time.sleep(0.5)
        raise EngineFault(f"vLLM did not answer in {seconds:.0f} s")

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()


def client(url: str, token: str | None) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    transport = httpx.HTTPTransport(retries=2, limits=limits)
    return httpx.Client(
        base_url=url, headers=headers, timeout=httpx.Timeout(None, connect=10), transport=transport, trust_env=False
    )


def get(http: httpx.Client, path: str) -> Any:
    try:
        return checked(http.get(path, timeout=30))
    except httpx.HTTPError as error:
        raise EngineFault(f"{http.base_url}{path}: {error!r}", fix="start the server, or check the address") from error


def checked(response: httpx.Response) -> Any:
    """The JSON (or text) of a good answer; the error that a bad one is."""
    if response.is_success:
        kind = response.headers.get("content-type", "")
        return response.json() if "json" in kind and response.content else response.text
    said = _said(response)
    if response.status_code == 404 and "Not Found" not in said:
        raise UnknownModel(said, fix="load the adapter first")
    if response.status_code == 401:
        raise InloopError(f"{response.url}: {said}", fix="give the server's token")
    if response.status_code >= 500 or response.status_code == 429:
        raise EngineFault(f"{response.url}: HTTP {response.status_code}: {said}")
    raise InloopError(f"{response.url}: HTTP {response.status_code}: {said}")


def _said(response: httpx.Response) -> str:
    try:
        body = response.json()
        error = body.get("error", body)
        return str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, AttributeError):
        return response.text[:300]


def read_info(http: httpx.Client) -> EngineInfo:
    """What a server says of itself; without `/server_info` its logprobs are not known to be processed."""
    card = get(http, "/v1/models")["data"][0]
    try:
        told = get(http, "/server_info?config_format=json")
    except InloopError as error:
        if isinstance(error, EngineFault):
            raise
        told = {}
    config = told.get("vllm_config", {})
    config = config.get("model_config", {}) if isinstance(config, dict) else {}
    mode = str(config.get("logprobs_mode", "unknown")).rpartition(".")[2]
    return EngineInfo(
        model=card["id"],
        max_model_len=card.get("max_model_len") or 0,
        dtype=str(config.get("dtype", "unknown")).removeprefix("torch."),
        weight_version=told.get("weight_version", 0),
        logprobs_mode=mode,
        trainable=mode == PROCESSED,
        meta=told.get("inloop") or {},
    )


def request_body(prompt: list[int], sampling: Sampling, most: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "prompt": prompt,
        "max_tokens": most,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "n": 1,
        "logprobs": 0,
        "return_token_ids": True,
    }
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if sampling.stop_token_ids:
        body["stop_token_ids"] = list(sampling.stop_token_ids)
    if sampling.ignore_eos:
        body["ignore_eos"] = True
    return body


def read_completion(got: dict[str, Any], version: int, seconds: float) -> Completion:
    choice = got["choices"][0]
    ids, logprobs = choice.get("token_ids"), (choice.get("logprobs") or {}).get("token_logprobs")
    if ids is None or logprobs is None or len(ids) != len(logprobs):
        raise EngineFault("the server gave no token ids with their logprobs", fix="use vLLM 0.22 or later")
    finish = choice["finish_reason"]
    return Completion(
        token_ids=ids,
        logprobs=logprobs,
        finish=finish if finish in ("stop", "length") else "abort",
        weight_version=got.get("weight_version", version),
        seconds=seconds,
    )
