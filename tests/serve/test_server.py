"""The endpoint: what it answers, whom it refuses, and what people and networks do to it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from serve.conftest import client

from inloop.harness.tools import schemas
from inloop.serve.guard import Limits
from inloop.serve.server import Running

HELLO = [{"role": "user", "content": "hello"}]
CHAT = "/v1/chat/completions"

pytestmark = [pytest.mark.xdist_group("serve"), pytest.mark.filterwarnings("ignore::FutureWarning")]


def post(http: httpx.Client, path: str, **body: Any) -> Any:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def stream(http: httpx.Client, path: str, **body: Any) -> list[dict[str, Any]]:
    with http.stream("POST", path, json={**body, "stream": True}) as response:
        lines = [line for line in response.iter_lines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines if line != "data: [DONE]"]


def test_models_health_and_metrics(http: httpx.Client, server: Running) -> None:
    [card] = http.get("/v1/models").json()["data"]
    assert card["id"] == server.model == "grpo-last" and card["inloop"]["dialect"] == "text"
    assert http.get("/health").status_code == 200
    post(http, CHAT, messages=HELLO, max_tokens=3)
    told = http.get("/metrics").text
    assert 'inloop_requests_total{route="/v1/chat/completions",status="200"}' in told
    assert "inloop_weight_version 1.0" in told and "vllm:generation_tokens_total" in told


def test_a_token_is_made_and_asked_for(server: Running) -> None:
    assert server.token and len(server.token) > 20
    with httpx.Client(base_url=server.url, trust_env=False) as stranger:
        assert stranger.get("/health").status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            refused = stranger.post(CHAT, json={"messages": HELLO}, headers=headers)
            assert refused.status_code == 401 and refused.json()["error"]["code"] == "invalid_api_key"
        assert stranger.get("/metrics").status_code == stranger.post("/swap", json={}).status_code == 401


def test_the_adapter_is_what_answers(http: httpx.Client, checkpoint: Path, server: Running) -> None:
    import torch

    from inloop.train.checkpoint import load_checkpoint

    got = post(http, CHAT, messages=HELLO, max_tokens=12, seed=3, logprobs=True, return_token_ids=True)
    model, _, _ = load_checkpoint(checkpoint)
    ids, prompt = got["choices"][0]["token_ids"], got["prompt_token_ids"]
    with torch.no_grad():
        logits = model.eval()(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
    wanted = logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()
    assert [c["logprob"] for c in got["choices"][0]["logprobs"]["content"]] == pytest.approx(wanted, abs=1e-3)


def test_streamed_calls_are_those_of_the_whole_answer(http: httpx.Client) -> None:
    body = {"messages": HELLO, "tools": schemas(("read", "submit")),
            "structured_outputs": {"choice": ["I look.\n```read a.py 1-3```"]}}  # fmt: skip
    [choice] = post(http, CHAT, **body)["choices"]
    assert choice["finish_reason"] == "tool_calls"
    call = choice["message"]["tool_calls"][0]["function"]
    assert json.loads(call["arguments"]) == {"path": "a.py", "start": 1, "end": 3}
    deltas = [c for e in stream(http, CHAT, **body) for c in e["choices"]]
    assert deltas[-1]["delta"]["tool_calls"][0]["function"] == call and deltas[-1]["finish_reason"] == "tool_calls"


def test_usage_in_a_stream(http: httpx.Client) -> None:
    events = stream(http, CHAT, messages=HELLO, max_tokens=6, seed=1, stream_options={"include_usage": True})
    whole = post(http, CHAT, messages=HELLO, max_tokens=6, seed=1)
    assert events[-1]["usage"] == whole["usage"]
    assert (
        "".join(c["delta"].get("content", "") for e in events for c in e["choices"])
        == (whole["choices"][0]["message"]["content"])
    )


MALFORMED: dict[str, bytes] = {
    "not json": b"{nope",
    "a list": b"[]",
    "nothing": b"",
    "a number as messages": b'{"messages": 5}',
    "messages of strings": b'{"messages": ["a"]}',
    "deep nesting": b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "not utf-8": b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
    "no role": b'{"messages": [{"content": "a"}]}',
    "tools without names": b'{"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function"}]}',
    "two constraints": b'{"messages": [{"role": "user", "content": "a"}], "structured_outputs": {"regex": "a"}}',
    "huge number": b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1e999}',
}


CHAT_ALONE = {"two constraints"}


@pytest.mark.parametrize(
    ("path", "name"), [(p, n) for p in (CHAT, "/v1/responses") for n in MALFORMED if p == CHAT or n not in CHAT_ALONE]
)
def test_malformed_bodies_get_the_standard_error(http: httpx.Client, name: str, path: str) -> None:
    body = MALFORMED[name]
    if path != CHAT:
        body = body.replace(b'"messages"', b'"input"').replace(b'"max_tokens"', b'"max_output_tokens"')
    response = http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["type"] == "invalid_request_error" and response.json()["error"]["message"]
    assert post(http, CHAT, messages=HELLO, max_tokens=1)["choices"]


def test_giant_prompts(http: httpx.Client, start: Callable[..., Running], checkpoint: Path) -> None:
    for size in (9_000, 6_000_000):
        got = http.post(CHAT, json={"messages": [{"role": "user", "content": "x y" * (size // 3)}]})
        assert got.status_code == 400 and got.json()["error"]["code"] == "context_length_exceeded"
    got = http.post(CHAT, content=b"x" * (9 << 20))
    assert got.status_code == 413 and got.json()["error"]["code"] == "request_too_large"

    def chunks() -> Iterator[bytes]:  # no length told beforehand
        for _ in range(10):
            yield b"x" * (1 << 20)

    with contextlib.suppress(httpx.HTTPError):  # the server may hang up before all of it was sent
        assert http.post(CHAT, content=chunks()).status_code == 413
    assert http.get("/health").status_code == 200


def test_a_full_queue_says_so_and_recovers(start: Callable[..., Running], checkpoint: Path) -> None:
    server = start(checkpoint, slots=1, limits=Limits(in_flight=3))
    with client(server) as http, ThreadPoolExecutor(12) as pool:
        post(http, "/pause", **{})

        def ask(_: int) -> httpx.Response:
            return http.post(CHAT, json={"messages": HELLO, "max_tokens": 2})

        waiting = [pool.submit(ask, i) for i in range(12)]
        while sum(w.done() for w in waiting) < 9:
            time.sleep(0.02)
        post(http, "/resume", **{})
        answers = [w.result() for w in waiting]
        assert sorted(a.status_code for a in answers) == [200] * 3 + [429] * 9
        full = next(a for a in answers if a.status_code == 429)
        assert full.headers["retry-after"] and full.json()["error"]["type"] == "rate_limit_error"
        assert ask(0).status_code == 200 and server.guard.in_flight == 0


def raw(server: Running, body: dict[str, Any]) -> socket.socket:
    data = json.dumps(body).encode()
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
    sock.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    return sock


def idle(server: Running, http: httpx.Client) -> bool:
    """Nothing is admitted, nothing is computed: within a bounded number of looks."""
    for _ in range(300):
        running = "vllm:num_requests_running 0" in http.get("/metrics").text
        if running and not server.guard.in_flight:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("streamed", [True, False])
def test_cut_connections_give_their_place_back(server: Running, http: httpx.Client, streamed: bool) -> None:
    body = {"messages": HELLO, "stream": streamed, "max_tokens": 1900, "ignore_eos": True}
    socks = [raw(server, body) for _ in range(4)]
    while server.guard.in_flight < 4:
        time.sleep(0.02)
    for sock in socks:
        sock.close()
    assert idle(server, http)
    computed = "vllm:generation_tokens_total "
    assert float(http.get("/metrics").text.split(computed)[1].split()[0]) < 4 * 1900


def test_a_slow_reader_holds_up_nobody(server: Running, http: httpx.Client) -> None:
    slow = raw(server, {"messages": HELLO, "stream": True, "max_tokens": 400, "ignore_eos": True})
    assert post(http, CHAT, messages=HELLO, max_tokens=4)["usage"]["completion_tokens"] <= 4
    got = bytearray()
    while b"[DONE]" not in got:
        piece = slow.recv(512)
        assert piece
        got += piece
    slow.close()
    assert got.count(b"data: ") > 50 and idle(server, http)


def test_a_body_that_never_comes(start: Callable[..., Running], checkpoint: Path) -> None:
    server = start(checkpoint, limits=Limits(upload_seconds=0.3))
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as sock:
        sock.sendall(
            f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{".encode()
        )
        sock.settimeout(30)
        assert b" 408 " in sock.recv(4096)


def test_draining_refuses_new_and_finishes_old(start: Callable[..., Running], checkpoint: Path) -> None:
    server = start(checkpoint, grace_seconds=30.0)
    with client(server) as http, client(server) as other:
        answers: list[httpx.Response] = []

        def long() -> None:
            answers.append(http.post(CHAT, json={"messages": HELLO, "max_tokens": 120, "ignore_eos": True}))

        thread = threading.Thread(target=long)
        thread.start()
        while not server.guard.in_flight:
            time.sleep(0.01)
        server.guard.draining = True
        refused = other.post(CHAT, json={"messages": HELLO})
        assert refused.status_code == 503 and refused.json()["error"]["code"] == "shutting_down"
        assert other.get("/health").status_code == 503
        assert server.drain() == 0
        thread.join()
        assert answers[0].status_code == 200 and answers[0].json()["usage"]["completion_tokens"] == 120


def test_a_stalled_client_is_given_up() -> None:
    """The app itself, with a network that takes nothing."""
    import asyncio

    from inloop.serve.guard import Guard
    from inloop.serve.metrics import Metrics

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 1000, "more_body": True})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(event: Any) -> None:
        await asyncio.sleep(3600 if event.get("body") else 0)

    guard = Guard(app, token=None, limits=Limits(stall_seconds=0.05), metrics=Metrics())
    asyncio.run(guard({"type": "http", "path": CHAT, "headers": []}, receive, send))
    assert guard.in_flight == 0
