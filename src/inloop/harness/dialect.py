"""How tools are shown and calls are written: the one interface over a model's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from inloop.errors import ConfigError
from inloop.harness.config import HarnessConfig
from inloop.harness.native import NativeDialect, training_template
from inloop.harness.text import TextDialect
from inloop.types import Call, Message, Text, message


class Dialect(Protocol):
    """`open` + sampled turn + `extend` + sampled turn + ... is exactly what the engine sees: ids are only added."""

    name: str
    tools: tuple[str, ...]
    stop_token_ids: tuple[int, ...]
    faithful: bool
    """The stream is also what the chat template renders for the whole conversation."""

    def system(self, tools: Sequence[str], guides: str) -> str:
        """The system message's text."""
        ...

    def open(self, messages: Sequence[Message]) -> list[int]:
        """Ids of the first context, generation prompt included; (T,)."""
        ...

    def split_open(self, messages: Sequence[Message]) -> list[list[int]]:
        """`open`, in the parts that each message adds; the last one holds the generation prompt."""
        ...

    def render(self, messages: Sequence[Message]) -> list[int]:
        """The chat template's own rendering of a whole conversation, to compare with; (T,)."""
        ...

    def extend(self, ended: bool, results: Sequence[Message]) -> list[int]:
        """Ids between a sampled turn and the next one; a turn without its stop token is ended first; (T,)."""
        ...

    def parse(self, token_ids: Sequence[int]) -> Message:
        """Sampled ids as a message; a call that can't be read has arguments None."""
        ...

    def encode_turn(self, message: Message) -> list[int]:
        """A text-only assistant message as the ids that would have been sampled, stop token included; (T,)."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str: ...

    def neutral(self, text: str) -> str:
        """`text` without control tokens."""
        ...

    def usage(self, tool: str) -> str:
        """How `tool` is called: told to an agent that got it wrong."""
        ...

    def schemas(self) -> list[dict[str, Any]]:
        """The tools as the model was shown them; empty where the system message says it all."""
        ...


def make_dialect(config: HarnessConfig, tokenizer: Any) -> Dialect:
    """The dialect that `config` names, proved on `tokenizer`. Raises ConfigError when it does not hold.

    Where the model's template rewrites earlier turns, TRL's prefix-preserving variant of it is used. Without one,
    text keeps its own append-only stream (`faithful` is False: a server that renders the template itself would show
    the model other earlier turns), native refuses."""
    dialect = _proved(config, tokenizer, None)
    if not dialect.faithful and (source := training_template(tokenizer)):
        other = _proved(config, tokenizer, source)
        dialect = other if other.faithful else dialect
    if not dialect.faithful and dialect.name == "native":
        raise _unproved(dialect.name, "the chat template renders earlier turns differently once others follow")
    return dialect


def _proved(config: HarnessConfig, tokenizer: Any, source: str | None) -> Dialect:
    make = NativeDialect if config.dialect == "native" else TextDialect
    try:
        dialect: Dialect = make(tokenizer, config.tools, source=source, thinking=config.thinking)
        prove(dialect)
    except ConfigError:
        raise
    except Exception as error:  # a chat template is a foreign program that refuses in its own ways
        raise _unproved(config.dialect, f"its template fails on a probe ({type(error).__name__}: {error})") from error
    return dialect


def prove(dialect: Dialect) -> None:
    """A probe conversation shows, before anything is sampled, that tokens can be kept exactly; sets `faithful`.

    A turn must end with a stop token that is sampled, one that was cut off must be ended, a call must be read back as
    it was written, and the parts of the first context must be the whole of it; `faithful`: the appended ids also
    decode to what the template renders for the whole conversation. Raises ConfigError."""
    opening = (message("system", dialect.system(dialect.tools, "")), message("user", "probe"))
    stream, messages = dialect.open(opening), list(opening)
    if [t for part in dialect.split_open(opening) for t in part] != stream:
        raise _unproved(dialect.name, "the parts of the first context are not the whole of it")
    for number, turn in enumerate((_probe_turn("read", {"path": "probe.py"}), _probe_turn("submit", {}))):
        sampled = dialect.encode_turn(turn)
        if not sampled or sampled[-1] not in dialect.stop_token_ids:
            raise _unproved(
                dialect.name, "a turn does not end with its stop token, so the model could not learn to stop"
            )
        if _calls(dialect.parse(sampled)) != _calls(turn):
            raise _unproved(dialect.name, "a call is not read back as it was written")
        result = message("tool", f"probe result {number}", call_id="read-0")
        if dialect.extend(False, [result])[0] not in dialect.stop_token_ids:
            raise _unproved(dialect.name, "a turn that was cut off is not ended before the next one")
        stream = stream + sampled + dialect.extend(True, [result])
        messages += [turn, result]
    dialect.faithful = dialect.decode(stream) == dialect.decode(dialect.render(messages))


def _calls(turn: Message) -> list[tuple[str, dict[str, Any] | None]]:
    return [(c.name, c.arguments) for c in turn.all_calls]


def _probe_turn(name: str, arguments: dict[str, Any]) -> Message:
    call = Call(id="read-0", name=name, arguments=arguments, raw="")
    return Message(role="assistant", parts=(Text(text="Probe.\n"), call))


def _unproved(name: str, why: str) -> ConfigError:
    other = "dialect = 'text', which works with any model" if name == "native" else "another chat template"
    return ConfigError(f"the {name} dialect does not hold for this tokenizer: {why}", fix=f"use {other}")
