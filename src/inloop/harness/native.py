"""The native dialect: the model's own chat template shows the tools, its own parser reads the calls."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from inloop.errors import ConfigError
from inloop.harness.template import MARK, Chat, Template
from inloop.harness.text import split_ids
from inloop.harness.tools import schemas, usage
from inloop.types import Call, Message, Part, Text, Thinking

DEPTH = 16
"""Arguments that nest deeper are no arguments: writing them down would end in a RecursionError."""
_MARKERS = re.compile(r"<tool_call>|<\|python_tag\|>|<function=|<\|tool_call|\[TOOL_CALLS\]")
_QWEN_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.S)
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s*:\s*(\{.*\})\s*\}\s*\Z', re.S)


class NativeDialect:
    name = "native"
    faithful = True

    def __init__(
        self,
        tokenizer: Any,
        tools: Sequence[str],
        *,
        source: str | None = None,
        thinking: bool = False,
        shown: Sequence[Chat] | None = None,
    ) -> None:
        """`source`: another chat template. `shown`: the schemas of a foreign trace, in place of those of `tools`."""
        self.tools = tuple(tools)
        self.tokenizer = _with_parser(tokenizer)
        self.template = Template(tokenizer, source=source, enable_thinking=thinking)
        self.stop_token_ids = self.template.stop_ids
        self._schemas = schemas(self.tools) if shown is None else list(shown)
        self._prompt = self.template.text([{"role": "user", "content": "u"}], prompt=True)

    def system(self, tools: Sequence[str], guides: str) -> str:
        head = "Work on the code in the current folder with the tools. Call one tool a turn; call submit when done."
        return f"{head}\n{guides}" if guides else head

    def open(self, messages: Sequence[Message]) -> list[int]:
        return [t for part in self.split_open(messages) for t in part]

    def split_open(self, messages: Sequence[Message]) -> list[list[int]]:
        return split_ids(self.template, self._chats(messages), self._schemas)

    def render(self, messages: Sequence[Message]) -> list[int]:
        return self.template.ids(self.template.text(self._chats(messages), prompt=True, tools=self._schemas))

    def extend(self, ended: bool, results: Sequence[Message]) -> list[int]:
        answered = [r for r in results if r.role == "tool"]
        turn: Chat = {"role": "assistant", "content": MARK}
        if answered:  # a template may drop the text beside a call, or refuse a second call
            turn["tool_calls"] = [_call_chat(_tool_name(answered[0]), {"mark": MARK})]
        before = [{"role": "user", "content": "u"}, turn]
        after = self.template.after_turn(before, self._chats(results))
        return self.template.ids(after.removeprefix(self.template.stop) if ended else after)

    def parse(self, token_ids: Sequence[int]) -> Message:
        ids = list(token_ids)
        text = self.template.decode(ids)
        said = self._said(ids, text)
        calls = [self._call(c, raw) for c, raw in _with_raw(said.get("tool_calls") or [], text)]
        if not calls and (found := _MARKERS.search(text)):
            raw = text[found.start() :].removesuffix(self.template.stop)
            calls = [Call(id="", name="", arguments=None, raw=raw)]
        thought = said.get("reasoning_content") or said.get("thinking") or ""
        parts: list[Part] = [Thinking(text=thought)] if thought else []
        if said.get("content"):
            parts.append(Text(text=said["content"].removesuffix(self.template.stop)))
        return Message(role="assistant", parts=(*parts, *calls))

    def _said(self, ids: list[int], text: str) -> dict[str, Any]:
        """What the parser made of a turn; the bare text where it gave up, however it did."""
        from trl.chat_template_utils import parse_response

        try:
            said = parse_response(self.tokenizer, ids, prefix=self.template.ids(self._prompt), tools=self._schemas)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            said = None
        return said if isinstance(said, dict) else {"content": text.removesuffix(self.template.stop)}

    def encode_turn(self, message: Message) -> list[int]:
        chat = [{"role": "user", "content": "u"}, self._chat(message)]
        whole, stop = self.template.text(chat, prompt=False), self.template.stop
        if not whole.startswith(self._prompt):
            raise ConfigError(
                "the chat template does not open a finished turn as it opens one to be sampled",
                fix="use dialect = 'text', or give the tokenizer a prefix-preserving template",
            )
        return self.template.ids(whole[len(self._prompt) : whole.rindex(stop) + len(stop)])

    def decode(self, token_ids: Sequence[int]) -> str:
        return self.template.decode(token_ids)

    def neutral(self, text: str) -> str:
        return self.template.neutral(text)

    def usage(self, tool: str) -> str:
        return usage(tool)

    def schemas(self) -> list[dict[str, Any]]:
        return self._schemas

    def _call(self, call: dict[str, Any], raw: str) -> Call:
        function = call.get("function", call)
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            arguments = _json_object(arguments)
        good = arguments if isinstance(arguments, dict) and _depth_within(arguments, DEPTH) else None
        return Call(id="", name=function["name"], arguments=good, raw=raw)

    def _chats(self, messages: Sequence[Message]) -> list[Chat]:
        return [self._chat(m) for m in messages]

    def _chat(self, m: Message) -> Chat:
        if m.role != "assistant":
            content = self.template.neutral(m.text)
            return {"role": m.role, "content": content, **({"name": _tool_name(m)} if m.role == "tool" else {})}
        out: Chat = {"role": "assistant", "content": m.text}
        thought = "".join(p.text for p in m.parts if isinstance(p, Thinking))
        if thought:
            out["reasoning_content"] = thought
        if m.calls:  # an embedded call is in the text
            out["tool_calls"] = [_call_chat(c.name, c.arguments or {}) for c in m.calls]
        return out


def training_template(tokenizer: Any) -> str | None:
    """TRL's prefix-preserving variant of a known template; None where it has none."""
    from trl.chat_template_utils import get_training_chat_template

    try:
        source: str | None = get_training_chat_template(tokenizer)
    except ValueError:
        return None
    return source


def _with_parser(tokenizer: Any) -> Any:
    if getattr(tokenizer, "response_template", None) is not None:
        return tokenizer
    from trl.chat_template_utils import add_response_schema

    try:
        return add_response_schema(tokenizer)
    except ValueError:
        raise ConfigError(
            "no parser is known for this model's chat template",
            fix="use dialect = 'text', or set tokenizer.response_template",
        ) from None


def _call_chat(name: str, arguments: dict[str, Any]) -> Chat:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def _tool_name(result: Message) -> str:
    """Call ids of this harness begin with the tool's name: 'read-3'."""
    return (result.call_id or "").rpartition("-")[0] or "tool"


def _with_raw(calls: list[dict[str, Any]], text: str) -> list[tuple[dict[str, Any], str]]:
    """Each parsed call with what the model wrote as its arguments, as far as the text shows it."""
    written = _QWEN_CALL.findall(text)
    out = []
    for i, call in enumerate(calls):
        found = _ARGUMENTS.search(written[i]) if len(written) == len(calls) else None
        out.append((call, found[1] if found else json.dumps(call.get("function", call).get("arguments"))))
    return out


def _depth_within(value: Any, limit: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return limit > 0 and all(_depth_within(v, limit - 1) for v in inner)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
