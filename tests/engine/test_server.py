"""The HTTP surface: what vLLM's clients rely on, and what people get wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from engine.tiny import rescore

from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.routes_openai import event
from inloop.engine.server import EngineServer

HELLO = [{"role": "user", "content": "hello"}]

pytestmark = pytest.mark.xdist_group("engine")  # one process serves them all


@pytest.fixture(scope="module")
def server(shared_engine: EmbeddedEngine) -> Iterator[EngineServer]:
    with EngineServer(shared_engine) as running:
        yield running


@pytest.fixture(scope="module")
def http(server: EngineServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
        yield client


def post(http: httpx.Client, path: str, **body: Any) -> Any:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def test_completion_gives_ids_and_the_trainers_logprobs(http: httpx.Client, plain: Any) -> None:
    prompt = [5, 9, 14, 33]
    got = post(
        http, "/v1/completions",
        model="", prompt=prompt, max_tokens=12, temperature=0.9, top_p=1.0, top_k=-1, repetition_penalty=1.0,
        n=1, return_token_ids=True, logprobs=0, seed=4, min_p=0.0,
    )  # fmt: skip
    choice = got["choices"][0]
    assert choice["prompt_token_ids"] == prompt
    assert choice["logprobs"]["tokens"] == [f"token_id:{i}" for i in choice["token_ids"]]
    wanted = rescore(plain, prompt, choice["token_ids"], 0.9)
    assert choice["logprobs"]["token_logprobs"] == pytest.approx(wanted, abs=1e-4)
    assert got["usage"]["completion_tokens"] == len(choice["token_ids"])


def test_chat_gives_what_a_capture_proxy_needs(http: httpx.Client, plain: Any, tiny_tokenizer: Any) -> None:
    body = {"messages": HELLO, "max_tokens": 10, "temperature": 1.0, "seed": 11}
    got = post(http, "/v1/chat/completions", **body, logprobs=True, return_token_ids=True, top_logprobs=0)
    choice = got["choices"][0]
    wanted_prompt = tiny_tokenizer.apply_chat_template(HELLO, add_generation_prompt=True, return_dict=False)
    assert got["prompt_token_ids"] == wanted_prompt
    content = choice["logprobs"]["content"]
    assert [c["token"] for c in content] == [f"token_id:{i}" for i in choice["token_ids"]]
    wanted = rescore(plain, wanted_prompt, choice["token_ids"])
    assert [c["logprob"] for c in content] == pytest.approx(wanted, abs=1e-4)
    assert choice["message"]["content"] == tiny_tokenizer.decode(choice["token_ids"], skip_special_tokens=True)
    again = post(http, "/v1/chat/completions", **body, return_token_ids=True)
    assert again["choices"][0]["token_ids"] == choice["token_ids"]


def test_streams_say_the_same_as_whole_answers(http: httpx.Client) -> None:
    for path, ask in (("/v1/completions", {"prompt": [7, 8]}), ("/v1/chat/completions", {"messages": HELLO})):
        body = {**ask, "max_tokens": 14, "seed": 2, "return_token_ids": True, "ignore_eos": True}
        whole = post(http, path, **body)
        events = stream(http, path, **body, stream_options={"include_usage": True})
        pieces = [c for e in events for c in e["choices"]]
        text = "".join(c["text"] if "text" in c else c["delta"].get("content") or "" for c in pieces)
        choice = whole["choices"][0]
        assert text == (choice["text"] if "text" in choice else choice["message"]["content"])
        assert [i for c in pieces for i in c.get("token_ids", [])] == choice["token_ids"]
        assert pieces[-1]["finish_reason"] == choice["finish_reason"] == "length"
        assert events[-1]["usage"] == whole["usage"]


def test_an_event_is_one_line_for_every_client() -> None:
    said = event({"text": "a\u2028b\u0085c\n"})
    assert said.splitlines()[1:] == [""] and json.loads(said.removeprefix("data: ")) == {"text": "a\u2028b\u0085c\n"}


def stream(http: httpx.Client, path: str, **body: Any) -> list[dict[str, Any]]:
    with http.stream("POST", path, json={**body, "stream": True}) as response:
        lines = [line for line in response.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_stop_string_ends_the_answer_before_it(http: httpx.Client) -> None:
    free = post(http, "/v1/completions", prompt=[7, 8, 9], max_tokens=24, seed=5, ignore_eos=True)
    text = free["choices"][0]["text"]
    stop = text[6:8]
    cut = post(http, "/v1/completions", prompt=[7, 8, 9], max_tokens=24, seed=5, ignore_eos=True, stop=stop)
    choice = cut["choices"][0]
    assert choice["text"] == text[: text.find(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    streamed = stream(http, "/v1/completions", prompt=[7, 8, 9], max_tokens=24, seed=5, ignore_eos=True, stop=[stop])
    assert "".join(c["text"] for e in streamed for c in e["choices"]) == choice["text"]


def test_openai_client_holds_a_conversation(server: EngineServer) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        model = client.models.list().data[0].id
        messages: list[Any] = [{"role": "system", "content": "You code."}]
        for turn in range(3):
            messages.append({"role": "user", "content": f"turn {turn}"})
            got = client.chat.completions.create(
                model=model, messages=messages, max_tokens=8, temperature=0.5, seed=turn, logprobs=True
            )
            assert got.choices[0].logprobs is not None and len(got.choices[0].logprobs.content or []) > 0
            messages.append({"role": "assistant", "content": got.choices[0].message.content})
        pieces = client.chat.completions.create(model=model, messages=messages, max_tokens=8, seed=1, stream=True)
        text = "".join(p.choices[0].delta.content or "" for p in pieces)
        again = client.chat.completions.create(model=model, messages=messages, max_tokens=8, seed=1)
        assert text == again.choices[0].message.content


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl on this machine")
def test_curl(server: EngineServer) -> None:
    body = json.dumps({"messages": HELLO, "max_tokens": 5})
    url, header = f"{server.url}/v1/chat/completions", "Content-Type: application/json"
    command = ["curl", "-sS", "--noproxy", "*", url, "-H", header, "-d", body]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    got = json.loads(run.stdout)
    assert got["object"] == "chat.completion" and got["choices"][0]["message"]["role"] == "assistant"


def test_state_routes(http: httpx.Client, shared_engine: EmbeddedEngine, tiny_tokenizer: Any) -> None:
    assert http.get("/health").status_code == 200
    card = http.get("/v1/models").json()["data"][0]
    assert card["max_model_len"] == 256 and card["id"] == shared_engine.info().model
    told = http.get("/server_info?config_format=json").json()["vllm_config"]
    assert told["model_config"]["logprobs_mode"] == "processed_logprobs"
    assert told["model_config"]["dtype"] == "torch.float32" and told["lora_config"] is None
    assert told["parallel_config"]["data_parallel_size"] == 1
    assert http.get("/get_world_size").json() == {"world_size": 1}
    ids = post(http, "/tokenize", prompt="def add(a, b)")["tokens"]
    assert ids == tiny_tokenizer.encode("def add(a, b)", add_special_tokens=False)
    assert post(http, "/detokenize", tokens=ids)["prompt"] == "def add(a, b)"
    metrics = http.get("/metrics").text
    assert float(metrics.split("vllm:generation_tokens_total ")[1].split()[0]) > 0


def test_paused_requests_wait_and_lose_nothing(http: httpx.Client) -> None:
    assert http.post("/pause?mode=keep").status_code == 200
    assert http.get("/is_paused").json() == {"is_paused": True}
    with pytest.raises(httpx.ReadTimeout):
        http.post("/v1/completions", json={"prompt": [4, 5], "max_tokens": 4}, timeout=0.5)
    assert http.post("/resume").status_code == 200
    assert post(http, "/v1/completions", prompt=[4, 5], max_tokens=4)["choices"][0]["finish_reason"]


def test_several_choices_and_prompts(http: httpx.Client) -> None:
    got = post(http, "/v1/completions", prompt=[[4, 5], [6, 7, 8]], n=2, seed=1, max_tokens=6, return_token_ids=True)
    assert [c["prompt_token_ids"] for c in got["choices"]] == [[4, 5], [4, 5], [6, 7, 8], [6, 7, 8]]
    assert got["choices"][0]["token_ids"] != got["choices"][1]["token_ids"]
    assert got["usage"]["prompt_tokens"] == 5


BAD: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "no prompt": ("/v1/completions", {"max_tokens": 4}, 400, "prompt"),
    "empty prompt": ("/v1/completions", {"prompt": []}, 400, "empty"),
    "token out of the vocabulary": ("/v1/completions", {"prompt": [5, 40000]}, 400, "vocabulary"),
    "negative token": ("/v1/completions", {"prompt": [-1]}, 400, "vocabulary"),
    "context overflow": ("/v1/completions", {"prompt": [5] * 256}, 400, "maximum context length is 256"),
    "chat overflow": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x" * 900}]}, 400, "maximum"),
    "no messages": ("/v1/chat/completions", {"messages": []}, 400, "messages"),
    "no role": ("/v1/chat/completions", {"messages": [{"content": "a"}]}, 400, "role"),
    "an image": (
        "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "text"
    ),
    "broken call": (
        "/v1/chat/completions",
        {"messages": [*HELLO, {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]},
        400, "tool call",
    ),
    "unknown model": ("/v1/completions", {"model": "gpt-9", "prompt": [5]}, 404, "gpt-9"),
    "top_k": ("/v1/completions", {"prompt": [5], "top_k": 40}, 400, "top_k"),
    "temperature": ("/v1/completions", {"prompt": [5], "temperature": -1}, 400, "temperature"),
    "top_p": ("/v1/completions", {"prompt": [5], "top_p": 0}, 400, "top_p"),
    "max_tokens": ("/v1/completions", {"prompt": [5], "max_tokens": 0}, 400, "max_tokens"),
    "wrong adapter": ("/v1/load_lora_adapter", {"lora_name": "a", "lora_path": "/nowhere"}, 400, "/nowhere"),
    "unknown adapter": ("/v1/unload_lora_adapter", {"lora_name": "a"}, 404, "not loaded"),
    "no such route": ("/v1/embeddings", {}, 404, "Not Found"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_told_in_the_openai_shape(http: httpx.Client, name: str) -> None:
    path, body, status, says = BAD[name]
    response = http.post(path, json=body)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert says in error["message"] and error["type"] == "invalid_request_error"
    if "overflow" in name:
        assert error["code"] == "context_length_exceeded"
    assert http.get("/health").status_code == 200
    assert post(http, "/v1/completions", prompt=[5], max_tokens=1)["choices"]


def test_what_is_not_json_is_told(http: httpx.Client) -> None:
    response = http.post("/v1/completions", content=b"{not json", headers={"Content-Type": "application/json"})
    assert response.status_code == 400 and "error" in response.json()


def test_foreign_host_names_are_refused(http: httpx.Client) -> None:
    assert http.get("/v1/models", headers={"Host": "evil.example"}).status_code == 400


def test_token_is_asked_for(shared_engine: EmbeddedEngine) -> None:
    with (
        EngineServer(shared_engine, token="secret") as server,
        httpx.Client(base_url=server.url, trust_env=False) as http,
    ):
        assert http.get("/health").status_code == 200
        refused = http.get("/v1/models")
        assert refused.status_code == 401 and refused.json()["error"]["code"] == "invalid_api_key"
        assert http.get("/v1/models", headers={"Authorization": "Bearer secret"}).status_code == 200


def test_chat_template_of_ones_own(shared_engine: EmbeddedEngine, tmp_path: Path) -> None:
    template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    with EngineServer(shared_engine, chat_template=template) as server:
        got = httpx.post(f"{server.url}/tokenize", json={"messages": HELLO}, trust_env=False).json()
        plain = httpx.post(f"{server.url}/tokenize", json={"prompt": "hello"}, trust_env=False).json()
        assert got["tokens"] == plain["tokens"]
