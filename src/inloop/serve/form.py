"""The checkpoint's own dialect between the wire and the engine: what it saw in training is what a client gets."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import uuid
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from inloop.engine.bodies import ApiError, context_error
from inloop.engine.render import ChatFormat, plain_message, wire_call
from inloop.harness.config import HarnessConfig
from inloop.harness.dialect import Dialect, make_dialect
from inloop.harness.native import NativeDialect
from inloop.harness.text import TextDialect
from inloop.types import Call, Message, Part, Text, Thinking

Tools = list[dict[str, Any]]
REMEMBERED = 4096
"""Sampled turns whose ids are kept."""
FOREIGN = "For {name}, write its arguments as JSON:\n```{name}\n{{...}}\n```\n{about}"


class Turns:
    """Ids of sampled turns by what stood before them and what was answered, so that a client that sends the answer
    back gets a prompt with the very ids that were sampled. Bounded; safe to use from many threads."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most, self._lock = most, threading.Lock()
        self._ids: OrderedDict[bytes, array[int]] = OrderedDict()

    def keep(self, prompt: Sequence[int], said: dict[str, Any], ids: Sequence[int]) -> None:
        with self._lock:
            self._ids[_key(prompt, said)] = array("I", ids)
            while len(self._ids) > self._most:
                self._ids.popitem(last=False)

    def find(self, prompt: Sequence[int], said: dict[str, Any]) -> list[int] | None:
        with self._lock:
            found = self._ids.get(_key(prompt, said))
        return None if found is None else list(found)


def _key(prompt: Sequence[int], said: dict[str, Any]) -> bytes:
    calls = [(c["function"]["name"], _arguments(c["function"])) for c in said.get("tool_calls") or []]
    told = json.dumps([said.get("content") or "", calls])
    return hashlib.sha256(array("I", prompt).tobytes() + told.encode("utf-8", "replace")).digest()


def _arguments(function: dict[str, Any]) -> Any:
    given = function.get("arguments")
    return json.loads(given) if isinstance(given, str) and given else given or {}


class TrainedFormat(ChatFormat):
    """Renders and parses with the dialect that the checkpoint was trained in, proved when it is loaded."""

    def __init__(self, folder: Path, config: HarnessConfig, *, context: int) -> None:
        from transformers import AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.config, self.context = config, context
        self.dialect: Dialect = make_dialect(config, self.tokenizer)
        self.template = self.dialect.template  # type: ignore[attr-defined]  # both dialects have one
        self.parses = True
        self.turns = Turns()
        self._longest = max(map(len, self.tokenizer.get_vocab()))
        self._shown = lru_cache(16)(self._showing)

    @property
    def stop_id(self) -> int:
        stop: int = self.template.stop_id
        return stop

    def render(self, messages: list[dict[str, Any]], tools: Tools | None, *, open_turn: bool, **options: Any) -> Any:
        """The ids of a conversation, appended turn by turn as in training; turns sampled here keep their own ids."""
        self._same_options(options)
        plain = [plain_message(m) for m in messages]
        self._surely_fits(plain)
        chats = self._introduced(plain, tools)
        dialect = self._for(tools)
        try:
            said = as_messages(chats)
            if open_turn:
                return self._stream(dialect, chats, said)
            text = [{"role": m.role, "content": m.text} for m in said]
            return self.template.ids(self.template.text(text, prompt=False))
        except ApiError:
            raise
        except Exception as error:  # templates raise their own kinds, by way of jinja
            raise ApiError(400, f"the chat template refuses these messages: {error}") from error

    def message(self, prompt: list[int], ids: list[int], tools: Tools | None) -> dict[str, Any]:
        if not tools and isinstance(self.dialect, TextDialect):
            return {"role": "assistant", "content": self.decode(ids)}
        if isinstance(self.dialect, TextDialect):
            said = self._read_blocks(ids, tools or [])
        else:
            said = self._for(tools).parse(ids)
        return as_answer(said, with_calls=bool(tools), whole=self.decode(ids))

    def remember(self, prompt: list[int], ids: list[int], message: dict[str, Any]) -> None:
        self.turns.keep(prompt, message, ids)

    def _stream(self, dialect: Dialect, chats: Tools, said: list[Message]) -> list[int]:
        if said[-1].role == "assistant":
            raise ApiError(400, "the last message has to be from the user or a tool")
        said = [m if m.role == "assistant" else _neutral(dialect, m) for m in said]
        groups = _turns(said)
        ids = dialect.open([said[i] for i in groups[0]])
        for group in groups[1:]:
            turn, results = group[0], [said[i] for i in group[1:]]
            known = self.turns.find(ids, chats[turn])
            own = dialect.encode_turn(said[turn]) if known is None else known
            ended = own[-1] in dialect.stop_token_ids
            ids = ids + own + dialect.extend(ended, results)
        return ids

    def _for(self, tools: Tools | None) -> Dialect:
        """native: the dialect with the tools of this request."""
        if isinstance(self.dialect, TextDialect):
            return self.dialect
        return self._shown(json.dumps(tools or []))

    def _showing(self, tools: str) -> Dialect:
        shown = json.loads(tools)
        if shown == self.dialect.schemas():
            return self.dialect
        source, thinking = self.template.source, self.config.thinking
        return NativeDialect(self.tokenizer, self.config.tools, source=source, thinking=thinking, shown=shown)

    def _introduced(self, chats: Tools, tools: Tools | None) -> Tools:
        """text: tools are told in the system message, as in training, unless it says so already."""
        if not tools or not isinstance(self.dialect, TextDialect):
            return chats
        own = [n for n in _names(tools) if n in self.config.tools]
        own = list(self.config.tools) if set(own) == set(self.config.tools) else own
        head = self.dialect.system(own, "") if own else "Each turn, write one block."
        more = [
            FOREIGN.format(name=t["function"]["name"], about=json.dumps(t["function"], ensure_ascii=False))
            for t in tools
            if t["function"]["name"] not in own
        ]
        first = chats[0]["content"] if chats[0]["role"] == "system" else ""
        rest = chats[1:] if chats[0]["role"] == "system" else chats
        if first.startswith(head) and not more:
            return chats
        return [{"role": "system", "content": "\n".join(filter(None, (head, *more, first)))}, *rest]

    def _read_blocks(self, ids: list[int], tools: Tools) -> Message:
        """Fenced blocks of our tools, or of the request's own with JSON inside: whichever comes first."""
        names = _names(tools)
        foreign = [n for n in names if n not in self.config.tools]
        own = TextDialect.parse(self.dialect, ids)  # type: ignore[arg-type]
        text = self.decode(ids)
        found = _json_block(text, foreign)
        before = next((text.find(c.raw) for c in own.all_calls if c.name in names), len(text))
        if found and found[0] < before:
            return Message(role="assistant", parts=(*_said(text[: found[0]]), found[1]))
        return own

    def _same_options(self, options: dict[str, Any]) -> None:
        for name, value in options.items():
            if self.template.variables.get(name) != value:
                raise ApiError(400, f"chat_template_kwargs.{name} is not what the checkpoint was trained with")

    def _surely_fits(self, chats: Tools) -> None:
        """A prompt that no tokenizer could make fit is refused before the time for it is spent."""
        least = sum(len(m["content"]) for m in chats) // self._longest
        if least >= self.context:
            raise context_error(least, self.context)


def _neutral(dialect: Dialect, said: Message) -> Message:
    """As the harness does it: what a file or a program says can't end a turn or open one."""
    return replace(said, parts=(Text(text=dialect.neutral(said.text)),))


def _names(tools: Tools) -> list[str]:
    try:
        return [t["function"]["name"] for t in tools]
    except (KeyError, TypeError) as error:
        raise ApiError(400, f"tools: a function without a name ({error!r})") from error


def _turns(said: Sequence[Message]) -> list[list[int]]:
    """Indexes: what comes before the first turn, then each turn with what follows it."""
    groups: list[list[int]] = [[]]
    for i, one in enumerate(said):
        if one.role == "assistant":
            groups.append([])
        groups[-1].append(i)
    if any(len(g) < 2 for g in groups[1:]):
        raise ApiError(400, "two assistant messages in a row: something has to stand between them")
    return groups


def _json_block(text: str, names: Sequence[str]) -> tuple[int, Call] | None:
    for found in re.finditer(r"^```(\S+)[ \t]*\n(.*?)\n?```[ \t]*$", text, re.M | re.S):
        if found[1] in names:
            try:
                value = json.loads(found[2] or "{}")
            except ValueError:
                value = None
            arguments = value if isinstance(value, dict) else None
            return found.start(), Call(id="", name=found[1], arguments=arguments, raw=found[2])
    return None


def _said(text: str) -> tuple[Part, ...]:
    return (Text(text=text),) if text.strip() else ()


def as_messages(chats: Tools) -> list[Message]:
    """Wire messages (already made plain) as ours; results carry their tool's name in their id, as templates want."""
    names = {c.get("id"): c["function"].get("name") for m in chats for c in m.get("tool_calls") or []}
    return [_as_message(m, names) for m in chats]


def _as_message(chat: dict[str, Any], names: dict[Any, Any]) -> Message:
    role = chat["role"]
    if role not in ("system", "user", "assistant", "tool"):
        raise ApiError(400, f"unknown role {role!r}")
    parts: list[Part] = [Text(text=chat["content"])] if chat["content"] else []
    if role != "assistant":
        name = names.get(chat.get("tool_call_id"))
        return Message(role=role, parts=tuple(parts), call_id=f"{name}-0" if name else chat.get("tool_call_id"))
    if thought := chat.get("reasoning_content"):
        parts.insert(0, Thinking(text=thought))
    for call in chat.get("tool_calls") or []:
        function = call["function"]
        arguments = function["arguments"] if isinstance(function["arguments"], dict) else None
        raw = json.dumps(function["arguments"], ensure_ascii=False)
        parts.append(Call(id=call.get("id") or "", name=function.get("name") or "", arguments=arguments, raw=raw))
    return Message(role="assistant", parts=tuple(parts))


def as_answer(said: Message, *, with_calls: bool, whole: str) -> dict[str, Any]:
    """A parsed turn in the OpenAI shape; a turn with a call that can't be read stays text, as the model wrote it."""
    out: dict[str, Any] = {"role": "assistant", "content": None}
    thought = "".join(p.text for p in said.parts if isinstance(p, Thinking))
    if thought:
        out["reasoning_content"] = out["reasoning"] = thought
    calls = said.all_calls
    if not with_calls or not calls or any(c.arguments is None for c in calls):
        bare = replace(said, parts=tuple(p for p in said.parts if not isinstance(p, Thinking)))
        return {**out, "content": bare.text if not calls or all(c.embedded for c in calls) else whole}
    first = next(i for i, p in enumerate(said.parts) if isinstance(p, Call))
    before = "".join(p.text for p in said.parts[:first] if isinstance(p, Text))
    out["content"] = before or None
    out["tool_calls"] = [_named(wire_call({"name": c.name, "arguments": c.arguments})) for c in calls]
    return out


def _named(call: dict[str, Any]) -> dict[str, Any]:
    """Some templates want a tool's name beside its result, and ids are all that clients send back."""
    return {**call, "id": f"{call['function']['name']}-{uuid.uuid4().hex[:12]}"}
