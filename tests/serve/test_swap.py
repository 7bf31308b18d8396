"""A newer checkpoint takes the place of the one that is served; one that doesn't belong there does not."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import build_tiny_model
from serve.conftest import TEXT, client, write_adapter

from inloop.serve.server import Running

pytestmark = [pytest.mark.xdist_group("serve"), pytest.mark.filterwarnings("ignore::FutureWarning")]


def said(http: httpx.Client) -> str:
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 12, "temperature": 0}
    return str(http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"])


def test_swap_and_back(start: Callable[..., Running], checkpoint: Path, newer: Path) -> None:
    from inloop.train.checkpoint import merge_checkpoint

    server = start(checkpoint)
    with client(server) as http:
        before = said(http)
        got = http.post("/swap", json={"checkpoint": str(newer)}).json()
        assert got["weight_version"] == 2 and said(http) != before
        assert http.get("/v1/models").json()["data"][0]["inloop"]["step"] == 9
        loaded = http.post("/v1/load_lora_adapter", json={"lora_name": "a", "lora_path": str(checkpoint)})
        assert loaded.status_code == 200 and said(http) == before
        merged = merge_checkpoint(newer, newer.parent / "merged")
        assert http.post("/swap", json={"checkpoint": str(merged)}).status_code == 200
        whole = said(http)
        refused = http.post("/swap", json={"checkpoint": str(checkpoint)})
        assert refused.status_code == 400 and "whole weights were loaded" in refused.json()["error"]["message"]
        assert said(http) == whole
        told = http.get("/metrics").text
        assert 'inloop_swaps{outcome="done"} 3.0' in told and 'inloop_swaps{outcome="refused"} 1.0' in told


def test_what_does_not_belong_is_refused(
    start: Callable[..., Running], checkpoint: Path, tiny_model: Path, tmp_path: Path
) -> None:
    server = start(checkpoint)
    other_base = write_adapter(build_tiny_model(tmp_path / "other", seed=3), tmp_path / "a")
    other_harness = write_adapter(tiny_model, tmp_path / "b", replace(TEXT, tools=("read", "submit")))
    torn = tmp_path / "torn"
    shutil.copytree(checkpoint, torn)
    (torn / "adapter_model.safetensors").write_bytes(b"torn")
    with client(server) as http:
        before = said(http)
        for folder, says in (
            (other_base, "base model"),
            (other_harness, "harness"),
            (tiny_model, "no checkpoint"),
            (torn, ""),
            (tmp_path / "nothing", "nothing"),
        ):
            refused = http.post("/swap", json={"checkpoint": str(folder)})
            assert refused.status_code in (400, 500, 503), refused.text
            assert says in refused.json()["error"]["message"]
        assert said(http) == before and http.get("/health").status_code == 200


def test_watch_takes_what_is_renamed_into_place(
    start: Callable[..., Running], checkpoint: Path, newer: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoints"
    shutil.copytree(checkpoint, folder / "last")
    server = start(folder / "last", watch=folder, watch_seconds=0.05)
    (folder / ".half").mkdir()
    (folder / ".half/inloop.json").write_text("{}")
    bad = json.loads((newer / "inloop.json").read_text())
    shutil.copytree(newer, folder / ".bad")
    (folder / ".bad/inloop.json").write_text(json.dumps({**bad, "base": "0" * 12}))
    (folder / ".bad").rename(folder / "bad")
    _until(lambda: server.serving.failed_swaps == 1)
    shutil.copytree(newer, folder / ".good", copy_function=_fresh)
    (folder / ".good").rename(folder / "good")
    _until(lambda: server.serving.swaps == 1)
    assert server.serving.origin.about.step == 9


def _fresh(source: str, target: str) -> Any:
    return shutil.copyfile(source, target)


def _until(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")
