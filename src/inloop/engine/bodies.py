"""What requests to the server may hold, in the OpenAI shape with vLLM's additions."""

from __future__ import annotations

import secrets
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from inloop.engine.base import Sampling

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "top_k": (None, 0, -1),
    "min_p": (None, 0),
    "repetition_penalty": (None, 1),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "logit_bias": (None, {}),
    "best_of": (None, 1),
    "echo": (None, False),
    "suffix": (None, ""),
    "prompt_logprobs": (None,),
    "top_logprobs": (None, 0),
    "min_tokens": (None, 0),
    "response_format": (None, {"type": "text"}),
}
"""Options that are taken only where they change nothing: ignoring one would sample from another distribution."""


class ApiError(Exception):
    """Answered in the OpenAI error shape."""

    def __init__(self, status: int, message: str, *, kind: str = "invalid_request_error", code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.code = status, message, kind, code or None

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.kind, "param": None, "code": self.code}}


class SamplingBody(BaseModel):
    model_config = ConfigDict(extra="allow")

    model: str = ""
    max_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=100)
    top_p: float | None = Field(None, gt=0, le=1)
    n: int | None = Field(None, ge=1, le=64)
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    return_token_ids: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    structured_outputs: dict[str, Any] | None = None
    """{"choice": [text]}: the answer is that text, so that what the server makes of it can be seen."""

    def samplings(self, most: int, prompt_tokens: int, max_model_len: int) -> list[Sampling]:
        """One a choice. `most` is cut to what the context leaves; raises ApiError for options that we don't have."""
        for name, neutral in NEUTRAL.items():
            if (self.model_extra or {}).get(name) not in neutral:
                raise ApiError(400, f"{name} is not supported; it may be left out or be {neutral[-1]!r}")
        room = max_model_len - prompt_tokens
        if room < 1:
            raise context_error(prompt_tokens, max_model_len)
        first = secrets.randbits(48) if self.seed is None else self.seed
        return [
            Sampling(
                temperature=1.0 if self.temperature is None else self.temperature,
                top_p=self.top_p or 1.0,
                max_tokens=min(most, room),
                seed=first + choice,
                stop_token_ids=tuple(self.stop_token_ids or ()),
                ignore_eos=self.ignore_eos,
            )
            for choice in range(self.n or 1)
        ]

    @property
    def stops(self) -> list[str]:
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [s for s in given if s]

    @property
    def forced(self) -> str | None:
        """The one text that `structured_outputs` allows. Raises ApiError for any other constraint."""
        given = self.structured_outputs
        if not given:
            return None
        choices = given.get("choice")
        if set(given) != {"choice"} or not isinstance(choices, list) or len(choices) != 1:
            raise ApiError(400, "structured_outputs is supported as a choice of one text only")
        return str(choices[0])

    @property
    def names_tokens(self) -> bool:
        return bool(self.return_token_ids or self.return_tokens_as_token_ids)

    @property
    def wants_usage(self) -> bool:
        return bool((self.stream_options or {}).get("include_usage"))


class CompletionBody(SamplingBody):
    prompt: str | list[int] | list[str] | list[list[int]]
    logprobs: int | None = Field(None, ge=0, le=1)
    """Of the sampled tokens only: 0 and 1 say the same."""


class ChatBody(SamplingBody):
    messages: list[dict[str, Any]] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    tools: list[dict[str, Any]] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    logprobs: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool = True


class TokenizeBody(BaseModel):
    model_config = ConfigDict(extra="allow")
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    add_special_tokens: bool = False
    add_generation_prompt: bool = True
    chat_template_kwargs: dict[str, Any] | None = None


class DetokenizeBody(BaseModel):
    tokens: list[int]


class LoadAdapterBody(BaseModel):
    model_config = ConfigDict(extra="allow")
    lora_name: str = Field(min_length=1)
    lora_path: str = Field(min_length=1)


class UnloadAdapterBody(BaseModel):
    model_config = ConfigDict(extra="allow")
    lora_name: str


class AbortBody(BaseModel):
    request_ids: list[str] = []


def context_error(prompt_tokens: int, max_model_len: int) -> ApiError:
    return ApiError(
        400,
        f"This model's maximum context length is {max_model_len} tokens; the prompt has {prompt_tokens}.",
        code="context_length_exceeded",
    )
