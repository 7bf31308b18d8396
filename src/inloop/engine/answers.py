"""One choice of an answer while it is being sampled, and the JSON that says it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from inloop.engine.base import Completion, ContextFull, Sampling
from inloop.engine.bodies import ApiError, SamplingBody, context_error
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.render import ChatFormat
from inloop.errors import EngineFault, InloopError


class Choice:
    """A running request: its text grows by `deltas`, and ends at a stop string where one was given."""

    def __init__(self, engine: EmbeddedEngine, form: ChatFormat, prompt: list[int], body: SamplingBody) -> None:
        self.engine, self.form, self.prompt, self.body = engine, form, prompt, body
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.text = ""
        self.finish: str | None = None
        self.stop_reason: str | None = None
        self.version = 0
        self._handle: int | None = None

    async def run(self, sampling: Sampling, conversation: str | None = None) -> None:
        """To the end, without looking at tokens on the way where no stop string asks for it."""
        if self.body.stops:
            async for _ in self.deltas(sampling, conversation):
                pass
            return
        self._handle, future = self.engine.submit(self.prompt, sampling, conversation=conversation)
        try:
            self._ended(await asyncio.wrap_future(future))
        except asyncio.CancelledError:
            self.abort()
            raise
        self.text = self.form.decode(self.ids)

    async def deltas(self, sampling: Sampling, conversation: str | None = None) -> AsyncIterator[tuple[str, int]]:
        """(new text, tokens so far), token by token; text that a stop string may still cut is held back."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[tuple[int, float] | None] = asyncio.Queue()

        def on_token(token: int, logprob: float) -> None:
            loop.call_soon_threadsafe(arrived.put_nowait, (token, logprob))

        self._handle, future = self.engine.submit(self.prompt, sampling, conversation=conversation, on_token=on_token)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(arrived.put_nowait, None))
        sent = 0
        try:
            while (got := await arrived.get()) is not None and self.stop_reason is None:
                self.ids.append(got[0])
                self.logprobs.append(got[1])
                self.text = self.form.decode(self.ids)
                self._cut_at_stop()
                safe = self._safe_length()
                if safe > sent:
                    yield self.text[sent:safe], len(self.ids)
                    sent = safe
            if self.stop_reason is None:
                self._ended(future.result())
                self.text = self.form.decode(self.ids)
            if len(self.text) > sent:
                yield self.text[sent:], len(self.ids)
        finally:
            if not future.done():
                self.abort()

    def abort(self) -> None:
        if self._handle is not None:
            self.engine.cancel(self._handle)

    def _ended(self, completion: Completion) -> None:
        self.ids, self.logprobs = completion.token_ids, completion.logprobs
        self.finish, self.version = completion.finish, completion.weight_version

    def _cut_at_stop(self) -> None:
        found = [(self.text.find(s), s) for s in self.body.stops if s in self.text]
        if found:
            at, self.stop_reason = min(found)
            self.text, self.finish = self.text[:at], "stop"
            self.abort()

    def _safe_length(self) -> int:
        """Leave out a cut character, and what may be the beginning of a stop string."""
        if self.stop_reason is not None:
            return len(self.text)
        length = len(self.text.rstrip("\ufffd"))
        for stop in self.body.stops:
            for size in range(min(len(stop) - 1, length), 0, -1):
                if self.text[:length].endswith(stop[:size]):
                    length -= size
                    break
        return length


class Forced(Choice):
    """An answer with one possible text: nothing is sampled, and under that constraint each token has probability 1."""

    def __init__(self, engine: EmbeddedEngine, form: ChatFormat, prompt: list[int], body: SamplingBody, said: str):
        super().__init__(engine, form, prompt, body)
        self._said = said

    async def run(self, sampling: Sampling, conversation: str | None = None) -> None:
        self.ids = [*self.form.encode(self._said), self.form.stop_id]
        self.logprobs = [0.0] * len(self.ids)
        self.text, self.finish = self.form.decode(self.ids), "stop"
        self.version = (await asyncio.to_thread(self.engine.info)).weight_version

    async def deltas(self, sampling: Sampling, conversation: str | None = None) -> AsyncIterator[tuple[str, int]]:
        await self.run(sampling, conversation)
        yield self.text, len(self.ids)


def as_api_error(error: BaseException) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ContextFull):
        return context_error(error.prompt_tokens, error.max_model_len)
    if isinstance(error, EngineFault):
        return ApiError(503, str(error), kind="engine_error", code="engine_fault")
    if isinstance(error, InloopError):
        return ApiError(400, str(error))
    return ApiError(500, repr(error), kind="internal_error")


def usage(prompts: list[list[int]], choices: list[Choice]) -> dict[str, int]:
    asked, answered = sum(map(len, prompts)), sum(len(c.ids) for c in choices)
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def envelope(kind: str, name: str, model: str) -> dict[str, Any]:
    return {"id": name, "object": kind, "created": int(time.time()), "model": model}


def token_names(choice: Choice) -> list[str]:
    if choice.body.names_tokens:
        return [f"token_id:{i}" for i in choice.ids]
    return [choice.form.decode([i], keep_special=True) for i in choice.ids]


def completion_choice(choice: Choice, index: int, *, logprobs: bool) -> dict[str, Any]:
    """vLLM's choice of /v1/completions."""
    out: dict[str, Any] = {
        "index": index,
        "text": choice.text,
        "logprobs": None,
        "finish_reason": choice.finish,
        "stop_reason": choice.stop_reason,
    }
    if logprobs:
        out["logprobs"] = {
            "tokens": token_names(choice),
            "token_logprobs": choice.logprobs,
            "top_logprobs": None,
            "text_offset": [],
        }
    if choice.body.return_token_ids:
        out["token_ids"], out["prompt_token_ids"] = choice.ids, choice.prompt
    return out


def chat_choice(choice: Choice, index: int, tools: list[dict[str, Any]] | None, *, logprobs: bool) -> dict[str, Any]:
    """vLLM's choice of /v1/chat/completions."""
    message = choice.form.message(choice.prompt, choice.ids, tools)
    if choice.stop_reason is not None:
        message["content"] = choice.text
    else:
        choice.form.remember(choice.prompt, choice.ids, message)
    out: dict[str, Any] = {
        "index": index,
        "message": message,
        "logprobs": chat_logprobs(choice) if logprobs else None,
        "finish_reason": "tool_calls" if message.get("tool_calls") else choice.finish,
        "stop_reason": choice.stop_reason,
    }
    if choice.body.return_token_ids:
        out["token_ids"] = choice.ids
    return out


def chat_logprobs(choice: Choice) -> dict[str, Any]:
    rows = zip(token_names(choice), choice.logprobs, strict=True)
    return {"content": [{"token": t, "logprob": p, "bytes": None, "top_logprobs": []} for t, p in rows]}
