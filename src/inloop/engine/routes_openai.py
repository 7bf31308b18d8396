"""The OpenAI routes: completions and chat completions, whole or as a stream, with token ids and logprobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from inloop.engine.answers import (
    Choice,
    Forced,
    as_api_error,
    chat_choice,
    chat_logprobs,
    completion_choice,
    envelope,
    token_names,
    usage,
)
from inloop.engine.base import Sampling
from inloop.engine.bodies import ApiError, ChatBody, CompletionBody, SamplingBody
from inloop.engine.serving import Serving, new_id

Planned = list[tuple[Choice, Sampling]]
DONE = "data: [DONE]\n\n"


def add_openai_routes(app: FastAPI, serving: Serving) -> None:
    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": serving.cards()}

    @app.post("/v1/completions")
    async def completions(body: CompletionBody, request: Request) -> Response:
        model, name = serving.served(body.model), request_id(request, "cmpl")
        planned = [p for prompt in prompts(serving, body) for p in plan(serving, body, prompt, body.max_tokens or 16)]
        if body.stream:
            return sse(stream_completion(serving, body, planned, envelope("text_completion", name, model)))
        await run_all(serving, name, planned, request)
        wanted = body.logprobs is not None
        choices = [completion_choice(c, i, logprobs=wanted) for i, (c, _) in enumerate(planned)]
        counts = usage(distinct_prompts(planned, body), [c for c, _ in planned])
        head = envelope("text_completion", name, model)
        return answer({**head, "choices": choices, "usage": counts, **versions(planned)})

    @app.post("/v1/chat/completions")
    async def chat(body: ChatBody, request: Request) -> Response:
        model, name = serving.served(body.model), request_id(request, "chatcmpl")
        tools = None if body.tool_choice == "none" else body.tools
        options = body.chat_template_kwargs or {}
        prompt = serving.form.render(body.messages, tools, open_turn=body.add_generation_prompt, **options)
        most = body.max_completion_tokens or body.max_tokens or serving.first.max_model_len
        planned = plan(serving, body, prompt, most)
        if body.stream:
            return sse(stream_chat(serving, body, planned, envelope("chat.completion.chunk", name, model), tools))
        await run_all(serving, name, planned, request)
        choices = [chat_choice(c, i, tools, logprobs=bool(body.logprobs)) for i, (c, _) in enumerate(planned)]
        out = {**envelope("chat.completion", name, model), "choices": choices, **versions(planned)}
        out["usage"] = usage([prompt], [c for c, _ in planned])
        if body.return_token_ids:
            out["prompt_token_ids"] = prompt
        return answer(out)


def request_id(request: Request, kind: str) -> str:
    return request.headers.get("x-request-id") or new_id(kind)


def prompts(serving: Serving, body: CompletionBody) -> list[list[int]]:
    given = body.prompt
    if isinstance(given, str):
        return [serving.form.encode(given)]
    if all(isinstance(p, int) for p in given):
        return [given]  # type: ignore[list-item]
    return [serving.form.encode(p) if isinstance(p, str) else p for p in given]  # type: ignore[misc]


def plan(serving: Serving, body: SamplingBody, prompt: list[int], most: int) -> Planned:
    samplings = body.samplings(most, len(prompt), serving.first.max_model_len)
    return [(choice(serving, prompt, body), s) for s in samplings]


def choice(serving: Serving, prompt: list[int], body: SamplingBody) -> Choice:
    if (said := body.forced) is not None:
        return Forced(serving.engine, serving.form, prompt, body, said)
    return Choice(serving.engine, serving.form, prompt, body)


def distinct_prompts(planned: Planned, body: SamplingBody) -> list[list[int]]:
    return [c.prompt for c, _ in planned[:: body.n or 1]]


def versions(planned: Planned) -> dict[str, Any]:
    return {"weight_version": min(c.version for c, _ in planned)}


def answer(value: dict[str, Any]) -> Response:
    return JSONResponse(value)


async def run_all(serving: Serving, name: str, planned: Planned, request: Request) -> None:
    """All choices at once; a client that hangs up aborts them."""
    with serving.flying(name, [c for c, _ in planned]):
        work = asyncio.gather(*(c.run(s) for c, s in planned))
        gone = asyncio.ensure_future(disconnected(request))
        gone.add_done_callback(lambda _: work.cancel())
        try:
            await work
        except asyncio.CancelledError as error:
            raise ApiError(499, "the client went away") from error
        finally:
            gone.cancel()


async def disconnected(request: Request) -> None:
    while not await request.is_disconnected():
        await asyncio.sleep(0.5)


def sse(events: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream")


def event(value: dict[str, Any]) -> str:
    """ASCII alone: httpx and others end a line at U+2028 or U+0085 as well, which JSON would leave as they are."""
    return f"data: {json.dumps(value)}\n\n"


async def stream_completion(
    serving: Serving, body: CompletionBody, planned: Planned, head: dict[str, Any]
) -> AsyncIterator[str]:
    wanted = body.logprobs is not None
    try:
        with serving.flying(head["id"], [c for c, _ in planned]):
            for index, (choice, sampling) in enumerate(planned):
                async for piece in pieces(choice, sampling, wanted, chat=False):
                    yield event({**head, "choices": [{"index": index, **piece}]})
        if body.wants_usage:
            counts = usage(distinct_prompts(planned, body), [c for c, _ in planned])
            yield event({**head, "choices": [], "usage": counts})
    except Exception as error:
        yield event(as_api_error(error).body())
    yield DONE


async def stream_chat(
    serving: Serving, body: ChatBody, planned: Planned, head: dict[str, Any], tools: list[dict[str, Any]] | None
) -> AsyncIterator[str]:
    """With tools the message is parsed whole before it is sent: calls are known at the end only."""
    try:
        with serving.flying(head["id"], [c for c, _ in planned]):
            for index, (choice, sampling) in enumerate(planned):
                first: dict[str, Any] = {"index": index, "delta": {"role": "assistant", "content": ""}}
                yield event({**head, "choices": [{**first, "finish_reason": None}]})
                if tools:
                    await choice.run(sampling)
                    yield event({**head, "choices": [whole_message(choice, index, tools, bool(body.logprobs))]})
                    continue
                async for piece in pieces(choice, sampling, bool(body.logprobs), chat=True):
                    yield event({**head, "choices": [{"index": index, **piece}]})
                if choice.stop_reason is None:
                    choice.form.remember(choice.prompt, choice.ids, {"content": choice.text})
        if body.wants_usage:
            yield event({**head, "choices": [], "usage": usage([planned[0][0].prompt], [c for c, _ in planned])})
    except Exception as error:
        yield event(as_api_error(error).body())
    yield DONE


def whole_message(choice: Choice, index: int, tools: list[dict[str, Any]], logprobs: bool) -> dict[str, Any]:
    full = chat_choice(choice, index, tools, logprobs=logprobs)
    delta = full.pop("message")
    if calls := delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(calls)]
    return {**full, "delta": delta}


async def pieces(choice: Choice, sampling: Sampling, logprobs: bool, *, chat: bool) -> AsyncIterator[dict[str, Any]]:
    """The deltas of one choice, each with the ids and logprobs of its tokens, and the piece that closes it."""
    sent = 0
    async for text, count in choice.deltas(sampling):
        yield piece(choice, text, slice(sent, count), logprobs, chat=chat)
        sent = count
    yield piece(choice, "", slice(sent, len(choice.ids)), logprobs, chat=chat, last=True)


def piece(choice: Choice, text: str, part: slice, logprobs: bool, *, chat: bool, last: bool = False) -> dict[str, Any]:
    shown = Choice(choice.engine, choice.form, choice.prompt, choice.body)
    shown.ids, shown.logprobs = choice.ids[part], choice.logprobs[part]
    out: dict[str, Any] = {"delta": {"content": text} if text else {}} if chat else {"text": text}
    out["finish_reason"] = choice.finish if last else None
    if last:
        out["stop_reason"] = choice.stop_reason
    if logprobs and chat:
        out["logprobs"] = chat_logprobs(shown)
    elif logprobs:
        out["logprobs"] = {"tokens": token_names(shown), "token_logprobs": shown.logprobs, "top_logprobs": None}
    if choice.body.return_token_ids:
        out["token_ids"] = shown.ids
    return out
