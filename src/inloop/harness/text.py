"""The text dialect: calls are fenced blocks, results are user messages; any model can speak it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from inloop.harness import blocks
from inloop.harness.template import Chat, Template
from inloop.types import Message


def system_text(tools: Sequence[str], guides: str) -> str:
    """What every text-dialect agent is told first, also one behind a chat API."""
    head = f"Work on the code in this folder. Each turn, write one block:\n{blocks.describe(tuple(tools))}"
    return f"{head}\n{guides}" if guides else head


class TextDialect:
    name = "text"
    faithful = True

    def __init__(self, tokenizer: Any, tools: Sequence[str], *, source: str | None = None, thinking: bool = False):
        self.tools = tuple(tools)
        self.template = Template(tokenizer, source=source, enable_thinking=thinking)
        self.stop_token_ids = self.template.stop_ids

    def system(self, tools: Sequence[str], guides: str) -> str:
        return system_text(tools, guides)

    def open(self, messages: Sequence[Message]) -> list[int]:
        return [t for part in self.split_open(messages) for t in part]

    def split_open(self, messages: Sequence[Message]) -> list[list[int]]:
        """Turns of an assistant among them are rendered as text: demonstrations, or what a trace holds."""
        first = next((i for i, m in enumerate(messages) if m.role == "assistant"), len(messages))
        parts = split_ids(self.template, [to_chat(m) for m in messages[:first]])
        for i in range(first, len(messages)):
            m = messages[i]
            if m.role == "assistant":
                parts.append(self.encode_turn(m))
            else:
                follows = messages[i + 1 : i + 2] and messages[i + 1].role != "assistant"
                if follows:
                    raise ValueError("two messages in a row between turns: join them first")
                parts.append(self.extend(True, [m]))
        return parts

    def render(self, messages: Sequence[Message]) -> list[int]:
        return self.template.ids(self.template.text([to_chat(m) for m in messages], prompt=True))

    def extend(self, ended: bool, results: Sequence[Message]) -> list[int]:
        after = self.template.user_turn(self.template.neutral("\n".join(m.text for m in results)))
        return self.template.ids(after.removeprefix(self.template.stop) if ended else after)

    def parse(self, token_ids: Sequence[int]) -> Message:
        ended = bool(token_ids) and token_ids[-1] in self.stop_token_ids
        text = self.template.decode(token_ids[:-1] if ended else token_ids)
        return blocks.read_turn(text, self.tools, ended=ended)

    def encode_turn(self, message: Message) -> list[int]:
        return [*self.template.ids(self.neutral(blocks.write_turn(message))), self.template.stop_id]

    def decode(self, token_ids: Sequence[int]) -> str:
        return self.template.decode(token_ids)

    def neutral(self, text: str) -> str:
        return self.template.neutral(text)

    def usage(self, tool: str) -> str:
        return f"write it as\n{blocks.HELP[tool]}" if tool in blocks.HELP else ""

    def schemas(self) -> list[dict[str, Any]]:
        return []


def to_chat(message: Message) -> Chat:
    """A message for a template that knows three roles."""
    if message.role == "assistant":
        return {"role": "assistant", "content": blocks.write_turn(message)}
    return {"role": "system" if message.role == "system" else "user", "content": message.text}


def split_ids(template: Template, chats: Sequence[Chat], tools: Sequence[Chat] = ()) -> list[list[int]]:
    """Ids that each message adds, where the shorter rendering is a prefix of the longer one in ids as well."""
    whole = template.ids(template.text(chats, prompt=True, tools=tools))
    cuts = [0]
    for count in range(1, len(chats)):
        try:
            part = template.ids(template.text(chats[:count], prompt=False, tools=tools))
        except Exception:  # a template may refuse a lone system message
            part = []
        cuts.append(len(part) if part == whole[: len(part)] and len(part) >= cuts[-1] else cuts[-1])
    cuts.append(len(whole))
    return [whole[a:b] for a, b in itertools.pairwise(cuts)]
