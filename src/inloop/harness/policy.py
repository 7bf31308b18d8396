"""Who answers: one interface over an engine of tokens, whose ids are kept exactly, and a chat API, which has none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from inloop.engine.base import ChatEngine, ContextFull, Engine, EngineInfo, Sampling
from inloop.errors import EngineFault
from inloop.harness import blocks
from inloop.harness.config import HarnessConfig
from inloop.harness.dialect import Dialect, make_dialect
from inloop.harness.text import system_text
from inloop.harness.tools import schemas, usage
from inloop.trace.trajectory import Node
from inloop.types import Call, Message, Thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What came back for one query."""

    message: Message
    token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    weight_version: int | None = None
    cut: bool = False
    """It met its token budget before its stop token."""
    tokens: int = 0
    """Sampled."""
    prompt_tokens: int = 0
    """Of the whole prompt, cached or not."""
    computed: int = 0
    """Prompt tokens that the engine had to compute."""
    seconds: float = 0.0


class Conversation(Protocol):
    """One context that grows; used by one thread."""

    def open(self, messages: Sequence[Message]) -> list[list[int] | None]:
        """The first messages; the ids that each of them adds, None where there are none of its own."""
        ...

    def observe(self, results: Sequence[Message]) -> list[list[int] | None]:
        """Results of the last turn; their ids likewise."""
        ...

    def restore(self, nodes: Sequence[Node]) -> None:
        """Go on after the last of `nodes`, a sampled turn, as if they had been said here."""
        ...

    def query(self, max_tokens: int, seed: int) -> Turn:
        """The next turn. Raises ContextFull, EngineFault."""
        ...

    def close(self) -> None: ...


class Policy(Protocol):
    """A model as the harness sees it; shared by all rollouts, safe to use from many threads."""

    def info(self) -> EngineInfo: ...

    def begin(self, key: str) -> Conversation:
        """A new conversation; `key` names it to the engine's cache."""
        ...

    def system(self, guides: str) -> str: ...

    def neutral(self, text: str) -> str:
        """`text` as it may stand in an observation."""
        ...

    def usage(self, tool: str) -> str: ...

    def schemas(self) -> list[dict[str, Any]]: ...


class TokenPolicy:
    """Token ids in, token ids out: what was sampled is never rendered or tokenised again."""

    def __init__(self, engine: Engine, dialect: Dialect, config: HarnessConfig) -> None:
        self.engine, self.dialect, self.config = engine, dialect, config
        self._max_model_len = engine.info().max_model_len

    def info(self) -> EngineInfo:
        return self.engine.info()

    def begin(self, key: str) -> Conversation:
        limit = min(self.config.max_context or self._max_model_len, self._max_model_len)
        return _TokenConversation(self, key, limit)

    def system(self, guides: str) -> str:
        return self.dialect.system(self.config.tools, guides)

    def neutral(self, text: str) -> str:
        return self.dialect.neutral(text)

    def usage(self, tool: str) -> str:
        return self.dialect.usage(tool)

    def schemas(self) -> list[dict[str, Any]]:
        return self.dialect.schemas()


class _TokenConversation:
    def __init__(self, policy: TokenPolicy, key: str, limit: int) -> None:
        self._policy, self._key, self._limit = policy, key, limit
        self._ids: list[int] = []
        self._ended = True
        self._calls = 0

    def open(self, messages: Sequence[Message]) -> list[list[int] | None]:
        parts = self._policy.dialect.split_open(messages)
        self._ids = [t for part in parts for t in part]
        return [part or None for part in parts]

    def observe(self, results: Sequence[Message]) -> list[list[int] | None]:
        added = self._policy.dialect.extend(self._ended, results)
        self._ids += added
        return [None] * (len(results) - 1) + [added]

    def restore(self, nodes: Sequence[Node]) -> None:
        self._ids = [t for n in nodes for t in n.token_ids or ()]
        self._ended = bool(self._ids) and self._ids[-1] in self._policy.dialect.stop_token_ids
        self._calls = sum(len(n.message.all_calls) for n in nodes if n.sampled)

    def query(self, max_tokens: int, seed: int) -> Turn:
        policy, room = self._policy, self._limit - len(self._ids)
        if room < 1:
            raise ContextFull(len(self._ids), self._limit)
        sampling = Sampling(
            temperature=policy.config.temperature,
            top_p=policy.config.top_p,
            max_tokens=min(max_tokens, room),
            seed=seed,
            stop_token_ids=policy.dialect.stop_token_ids,
        )
        got = policy.engine.generate(self._ids, sampling, conversation=self._key)
        if got.finish == "abort":
            raise EngineFault("the engine gave a request up")
        self._ids += got.token_ids
        self._ended = bool(got.token_ids) and got.token_ids[-1] in policy.dialect.stop_token_ids
        said, self._calls = named(policy.dialect.parse(got.token_ids), self._calls)
        return Turn(
            message=said,
            token_ids=got.token_ids,
            logprobs=got.logprobs,
            weight_version=got.weight_version,
            cut=not self._ended,
            tokens=len(got.token_ids),
            prompt_tokens=len(self._ids) - len(got.token_ids),
            computed=got.prompt_tokens_computed,
            seconds=got.seconds,
        )

    def close(self) -> None:
        self._policy.engine.forget(self._key)


class ChatPolicy:
    """Messages in, messages out: teachers and baselines behind any chat API; nothing of it trains by tokens."""

    def __init__(self, engine: ChatEngine, config: HarnessConfig) -> None:
        self.engine, self.config = engine, config

    def info(self) -> EngineInfo:
        return self.engine.info()

    def begin(self, key: str) -> Conversation:
        return _ChatConversation(self)

    def system(self, guides: str) -> str:
        if self.config.dialect == "text":
            return system_text(self.config.tools, guides)
        return "\n".join(filter(None, ("Work on the code in the current folder. Call submit when done.", guides)))

    def neutral(self, text: str) -> str:
        return text

    def usage(self, tool: str) -> str:
        text = self.config.dialect == "text" and tool in blocks.HELP
        return f"write it as\n{blocks.HELP[tool]}" if text else usage(tool)

    def schemas(self) -> list[dict[str, Any]]:
        return [] if self.config.dialect == "text" else schemas(self.config.tools)


class _ChatConversation:
    def __init__(self, policy: ChatPolicy) -> None:
        self._policy = policy
        self._messages: list[Message] = []
        self._calls = 0

    def open(self, messages: Sequence[Message]) -> list[list[int] | None]:
        self._messages = list(messages)
        return [None] * len(messages)

    def observe(self, results: Sequence[Message]) -> list[list[int] | None]:
        self._messages += results
        return [None] * len(results)

    def restore(self, nodes: Sequence[Node]) -> None:
        self._messages = [n.message for n in nodes]
        self._calls = sum(len(n.message.all_calls) for n in nodes if n.sampled)

    def query(self, max_tokens: int, seed: int) -> Turn:
        policy = self._policy
        sampling = Sampling(
            temperature=policy.config.temperature, top_p=policy.config.top_p, max_tokens=max_tokens, seed=seed
        )
        reply = policy.engine.chat(self._messages, policy.schemas(), sampling)
        said = reply.message
        if policy.config.dialect == "text" and not said.all_calls:
            thoughts = [p for p in said.parts if isinstance(p, Thinking)]
            read = blocks.read_turn(said.text, policy.config.tools, ended=reply.finish != "length")
            said = replace(said, parts=(*thoughts, *read.parts))
        said, self._calls = named(said, self._calls)
        self._messages.append(said)
        used = reply.usage
        return Turn(
            message=said,
            cut=reply.finish == "length",
            tokens=used.get("completion_tokens", 0),
            prompt_tokens=used.get("prompt_tokens", 0),
            seconds=reply.seconds,
        )

    def close(self) -> None:
        self._messages = []


def named(said: Message, before: int) -> tuple[Message, int]:
    """Calls without an id get one that begins with the tool's name: some templates need it beside a result."""
    count, parts = before, []
    for part in said.parts:
        if isinstance(part, Call):
            count += 1
            part = part if part.id else replace(part, id=f"{part.name or 'call'}-{count}")
        parts.append(part)
    return replace(said, parts=tuple(parts)), count


def make_policy(engine: Engine | ChatEngine, config: HarnessConfig, tokenizer: Any = None) -> Policy:
    """The form that fits the engine; the token form needs the model's tokenizer and proves its dialect on it."""
    if hasattr(engine, "chat"):
        return ChatPolicy(cast(ChatEngine, engine), config)
    return TokenPolicy(engine, make_dialect(config, tokenizer), config)


def turn_seed(seed: int, turn: int) -> int:
    """A seed for each turn of a rollout, the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{turn}".encode()).digest()[:4]) >> 1
