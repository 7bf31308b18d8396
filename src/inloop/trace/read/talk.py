"""A list of chat messages -> nodes: native, tagged and text-action calls, results by id or by order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inloop.trace.read import tagged
from inloop.trace.read.build import Forest, Pairing, kind_of, moment, result, text_of
from inloop.trace.read.messages import assistant, parts_of, role_of, with_ids
from inloop.trace.read.place import Bad, Place
from inloop.trace.trajectory import Trajectory
from inloop.types import Message, Part, Text


class Talk(Forest):
    """A forest that is fed chat messages in their order.

    `actions` finds the calls that a text harness reads out of the assistant's words; the user message that follows
    such a turn is its observation and stays a user message, as the model saw it."""

    def __init__(self, source_format: str, place: Place, *, actions: tagged.Actions | None = None, **kw: Any) -> None:
        super().__init__(source_format, place, **kw)
        self.actions = actions
        self.pairing = Pairing()
        self._embedded = False

    def feed(self, messages: Iterable[Any]) -> None:
        """Raises Bad for a message without a known role."""
        for message in messages:
            if not isinstance(message, dict):
                raise Bad(f"a message is a {kind_of(message)}")
            self.hear(message)

    def hear(self, message: dict[str, Any], **kw: Any) -> None:
        role = role_of(message.get("role"))
        if "timestamp" in message and "time" not in kw:
            kw["time"] = moment(message["timestamp"])
        if role == "assistant":
            self._assistant(message, **kw)
        elif role == "tool":
            self._tool(message, **kw)
        elif role == "system":
            self._system(message, **kw)
        else:
            self._user(message, **kw)

    def done(self) -> Trajectory:
        if self.pairing.by_order:
            self.trajectory.meta["paired_by_order"] = self.pairing.by_order
        return super().done()

    def _assistant(self, message: dict[str, Any], *, sampled: bool = True, **kw: Any) -> None:
        self.pairing.turn()
        say = assistant(message, self.place)
        content = message.get("content")
        if not say.calls and isinstance(content, str):
            say = Message(role="assistant", parts=tuple(self._from_text(say, content)))
        parts = with_ids(say.parts, self.pairing.called)
        origin = None
        if message.get("is_demo"):
            sampled, origin = False, "demo"
        elif message.get("weight") == 0 or message.get("mask") is False or message.get("train") is False:
            sampled = False
        self.add(Message(role="assistant", parts=parts, origin=origin), sampled=sampled, **kw)

    def _from_text(self, say: Message, content: str) -> list[Part]:
        thoughts, rest = tagged.split_thoughts(content)
        before: list[Part] = [p for p in say.parts if not isinstance(p, Text)]
        self._embedded = False
        if tagged.has_calls(rest):
            self.trajectory.meta["calls"] = "tagged text"
            return [*before, *thoughts, *tagged.tagged_parts(rest)]
        if self.actions and (found := self.actions(rest)):
            self._embedded = True
            self.trajectory.meta["calls"] = "inside the text"
            return [*before, *thoughts, *tagged.embed(rest, found, self.pairing.new_id)]
        return [*before, *thoughts, *([Text(text=rest)] if rest else [])]

    def _tool(self, message: dict[str, Any], **kw: Any) -> None:
        content = message.get("content")
        if isinstance(content, str) and (several := tagged.responses(content)) is not None:
            for text in several:
                self.add(result(self.pairing.answer(), text), **kw)
            return
        failed = bool(message.get("is_error") or message.get("isError") or message.get("error"))
        parts = (Text(text=content),) if isinstance(content, str) else tuple(parts_of(content, self.place))
        answered = self.pairing.answer(self._own(message))
        self.add(Message(role="tool", parts=parts or (Text(text=""),), call_id=answered, is_error=failed), **kw)

    def _own(self, message: dict[str, Any]) -> str | None:
        """The id that the result itself names."""
        own = message.get("tool_call_id") or message.get("toolCallId")
        if not own and isinstance(many := message.get("tool_call_ids"), list) and many:
            own = many[0]
            if len(many) > 1:
                self.place.block("one result for several calls")
        return own if isinstance(own, str) else str(own) if isinstance(own, int) else None

    def _system(self, message: dict[str, Any], **kw: Any) -> None:
        text = text_of(message.get("content"), self.place)
        if "<tools>" in text and not self.trajectory.tools:
            text, self.trajectory.tools = tagged.split_tools(text)
        role = "developer" if message.get("role") == "developer" else None
        self.add(Message(role="system", parts=(Text(text=text),), origin=role), **kw)

    def _user(self, message: dict[str, Any], **kw: Any) -> None:
        content = message.get("content")
        origin = "demo" if message.get("is_demo") else message.get("origin")
        if isinstance(content, str):
            if (several := tagged.responses(content)) is not None:
                for text in several:
                    self.add(result(self.pairing.answer(), text), **kw)
                return
            if self._embedded and self.pairing.open:
                self._observed(content, **kw)
                return
        rest = self._results(content, **kw)
        if rest or not isinstance(content, list):
            parts = tuple(parts_of(rest, self.place)) or (Text(text=""),)
            self.add(Message(role="user", parts=parts, origin=origin), **kw)

    def _observed(self, content: str, **kw: Any) -> None:
        """One observation closes all calls of its turn; it answers the last of them."""
        answered = self.pairing.open[-1]
        self.pairing.turn()
        self.pairing.by_order += 1
        self._embedded = False
        self.add(result(answered, content, role="user", origin="observation"), **kw)

    def _results(self, content: Any, **kw: Any) -> Any:
        """Anthropic's `tool_result` blocks become results of their own; what is left is the person's."""
        if not isinstance(content, list):
            return content
        rest = []
        for block in content:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                parts = tuple(parts_of(block.get("content"), self.place)) or (Text(text=""),)
                own = self.pairing.answer(block.get("tool_use_id"))
                self.add(result(own, "", parts=parts, is_error=bool(block.get("is_error"))), **kw)
            else:
                rest.append(block)
        return rest
