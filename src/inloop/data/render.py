"""Text-only contexts, rendered once through a harness dialect; the mask is proved by reading the turns back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from jinja2 import TemplateError

from inloop.errors import ConfigError
from inloop.trace.trajectory import Node
from inloop.types import Call, Image, Message, Text, Thinking


class Encoder(Protocol):
    """What a dialect offers (`inloop.harness.dialect.Dialect`): a token stream that only ever grows."""

    @property
    def name(self) -> str: ...

    def extend(self, ended: bool, results: Sequence[Message]) -> list[int]: ...

    def encode_turn(self, message: Message) -> list[int]: ...

    def parse(self, token_ids: Sequence[int]) -> Message: ...

    def render(self, messages: Sequence[Message]) -> list[int]: ...

    def decode(self, token_ids: Sequence[int]) -> str: ...


def render(path: Sequence[Node], encoder: Encoder) -> list[list[int]] | str:
    """The ids that each node adds, up to the last assistant message; or why the context can't be rendered.

    Messages between two turns go in together, on the account of the last of them."""
    turns = [i for i, n in enumerate(path) if n.message.role == "assistant"]
    if not turns or turns[0] == 0:
        return "no prompt before the first turn" if turns else "no assistant message"
    if any(isinstance(p, Image) for n in path for p in n.message.parts):
        return "holds an image"
    try:
        out = _stream(path, turns, encoder)
        if isinstance(out, str) or encoder.name == "text":
            return out
        return out if _stays(path, turns[-1], out, encoder) else "the template renders earlier turns differently later"
    except (ConfigError, TemplateError) as error:
        return f"the template refuses it: {str(error).splitlines()[0]}"


def _stream(path: Sequence[Node], turns: list[int], encoder: Encoder) -> list[list[int]] | str:
    out: list[list[int]] = []
    start = 0
    for turn in turns:
        between = [n.message for n in path[start:turn]]
        if not between:
            return "two assistant messages in a row"
        ids = encoder.extend(True, between) if start else encoder.render(between)
        body = encoder.encode_turn(path[turn].message)
        out += [[]] * (len(between) - 1) + [ids, body]
        if path[turn].sampled and (wrong := unproved(path[turn].message, body, encoder)):
            return wrong
        start = turn + 1
    return out


def _stays(path: Sequence[Node], last: int, pieces: list[list[int]], encoder: Encoder) -> bool:
    """Whether the model's own template, given the whole context at once, writes just these tokens: one that drops
    the thinking of earlier turns does not."""
    stream = [t for piece in pieces[:last] for t in piece]
    return encoder.decode(encoder.render([n.message for n in path[:last]])) == encoder.decode(stream)


def unproved(message: Message, ids: list[int], encoder: Encoder) -> str:
    """Why the rendered turn does not read back as the message that it was made of; '' when it does.

    Calls that the message holds inside its text (a foreign format) are words like others: the words must agree."""
    back = encoder.parse(ids)
    if _thinking(back) != _thinking(message):
        return "rendered turn reads back with other thinking"
    if not message.calls and message.text.strip() == back.text.strip():
        return ""
    for kind, of in (("text", _text), ("calls", _calls)):
        if of(back) != of(message):
            return f"rendered turn reads back with other {kind}"
    return ""


def _text(message: Message) -> str:
    return "\n".join(p.text.strip() for p in message.parts if isinstance(p, Text) and p.text.strip())


def _thinking(message: Message) -> str:
    return "\n".join(p.text.strip() for p in message.parts if isinstance(p, Thinking) and p.text.strip())


def _calls(message: Message) -> list[tuple[str, Any]]:
    return [(p.name, p.raw if p.arguments is None else p.arguments) for p in message.parts if isinstance(p, Call)]
