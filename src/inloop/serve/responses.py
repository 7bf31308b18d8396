"""`/v1/responses`: whole, or as its typed events; the last ones are kept, so that a conversation can go on by id."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from inloop.engine.answers import Choice, as_api_error
from inloop.engine.base import Sampling
from inloop.engine.bodies import ApiError, ChatBody
from inloop.engine.routes_openai import plan, run_all
from inloop.engine.serving import Serving
from inloop.serve.responses_body import Item, ResponsesBody, ended, items_of, new_response, text_item, text_part

KEPT = 256
"""Responses that a later one can go on from."""


class Kept:
    """Response id -> the chat messages up to it (without its instructions, which do not carry over)."""

    def __init__(self) -> None:
        self._messages: OrderedDict[str, list[Item]] = OrderedDict()

    def keep(self, response: Item, messages: list[Item]) -> None:
        self._messages[response["id"]] = messages
        while len(self._messages) > KEPT:
            self._messages.popitem(last=False)

    def before(self, name: str | None) -> list[Item]:
        if name is None:
            return []
        if name not in self._messages:
            raise ApiError(404, f"no response {name!r} is kept", code="previous_response_not_found")
        return self._messages[name]


class Asked:
    """One request on its way: the chat that it is, its choice, and the response that it becomes."""

    def __init__(self, serving: Serving, body: ResponsesBody, kept: Kept) -> None:
        self.serving, self.body, self.kept = serving, body, kept
        self.chat: ChatBody = body.as_chat(kept.before(body.previous_response_id))
        self.response = new_response(body, serving.served(body.model))
        self.tools = None if body.tool_choice == "none" else self.chat.tools
        prompt = serving.form.render(self.chat.messages, self.tools, open_turn=True)
        most = self.chat.max_completion_tokens or serving.first.max_model_len
        self.choice: Choice
        self.sampling: Sampling
        [(self.choice, self.sampling)] = plan(serving, self.chat, prompt, most)

    def said(self) -> Item:
        message = self.choice.form.message(self.choice.prompt, self.choice.ids, self.tools)
        self.choice.form.remember(self.choice.prompt, self.choice.ids, message)
        return message

    def end(self, message: Item, output: list[Item]) -> Item:
        done = ended(self.response, output, self.choice.finish, len(self.choice.prompt), len(self.choice.ids))
        if self.body.store is not False:
            own = self.chat.messages[1:] if self.body.instructions else self.chat.messages
            self.kept.keep(done, [*own, message])
        return done


def add_responses_route(app: FastAPI, serving: Serving) -> None:
    kept = Kept()

    @app.post("/v1/responses")
    async def responses(body: ResponsesBody, request: Request) -> Response:
        asked = Asked(serving, body, kept)
        if body.stream:
            return StreamingResponse(events(asked), media_type="text/event-stream")
        await run_all(serving, asked.response["id"], [(asked.choice, asked.sampling)], request)
        message = asked.said()
        return JSONResponse(asked.end(message, items_of(message)))


async def events(asked: Asked) -> AsyncIterator[str]:
    """Server-sent events with their sequence numbers; an error in the middle is an event as well."""
    number = 0
    try:
        with asked.serving.flying(asked.response["id"], [asked.choice]):
            async for event in _events(asked):
                yield _line(event, number)
                number += 1
    except Exception as error:
        known = as_api_error(error)
        yield _line({"type": "error", "code": known.code, "message": known.message, "param": None}, number)


def _line(event: dict[str, Any], number: int) -> str:
    told = json.dumps({**event, "sequence_number": number})  # ASCII, as in the engine's own streams
    return f"event: {event['type']}\ndata: {told}\n\n"


async def _events(asked: Asked) -> AsyncIterator[dict[str, Any]]:
    yield {"type": "response.created", "response": asked.response}
    yield {"type": "response.in_progress", "response": asked.response}
    if asked.tools:  # calls are known at the end only
        await asked.choice.run(asked.sampling)
        message = asked.said()
        output = items_of(message)
        for index, item in enumerate(output):
            for event in _whole_item(item, index):
                yield event
    else:
        output, text = [], ""
        item = text_item("", status="in_progress")
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        yield {"type": "response.content_part.added", **at, "part": text_part("")}
        async for piece, _ in asked.choice.deltas(asked.sampling):
            text += piece
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        message = {"role": "assistant", "content": text}
        asked.choice.form.remember(asked.choice.prompt, asked.choice.ids, message)
        output = [text_item(text, name=item["id"])]
        for event in _text_ended(output[0], 0):
            yield event
    done = asked.end(message, output)
    yield {"type": f"response.{done['status']}", "response": done}


def _whole_item(item: Item, index: int) -> list[dict[str, Any]]:
    added = {"type": "response.output_item.added", "output_index": index}
    at = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        text = item["content"][0]["text"]
        opened = {**item, "status": "in_progress", "content": []}
        part = {"type": "response.content_part.added", **at, "content_index": 0, "part": text_part("")}
        delta = {"type": "response.output_text.delta", **at, "content_index": 0, "delta": text, "logprobs": []}
        return [{**added, "item": opened}, part, delta, *_text_ended(item, index)]
    done = {"type": "response.output_item.done", "output_index": index, "item": item}
    if item["type"] != "function_call":
        return [{**added, "item": item}, done]
    opened = {**item, "status": "in_progress", "arguments": ""}
    told = item["arguments"]
    return [
        {**added, "item": opened},
        {"type": "response.function_call_arguments.delta", **at, "delta": told},
        {"type": "response.function_call_arguments.done", **at, "arguments": told, "name": item["name"]},
        done,
    ]


def _text_ended(item: Item, index: int) -> list[dict[str, Any]]:
    text = item["content"][0]["text"]
    at = {"item_id": item["id"], "output_index": index, "content_index": 0}
    return [
        {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **at, "part": text_part(text)},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]
