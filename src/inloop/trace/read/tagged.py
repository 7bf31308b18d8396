"""Calls, results and thoughts written as tagged text: Hermes `<tool_call>`, `<function=NAME>`, `<think>`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inloop.trace.read.build import parsed, thinking
from inloop.types import Call, Part, Text, Thinking

_CALL = re.compile(r"\s*<tool_call>(.*?)(?:</tool_call>|\Z)\s*", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>(.*?)</tool_response>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)\s*>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)\s*>(.*?)</parameter>", re.DOTALL)
_THINK = re.compile(r"\s*<think(?:ing)?>(.*?)</think(?:ing)?>\s*", re.DOTALL)
_ORPHAN = re.compile(r"(.*?)</think(?:ing)?>\s*", re.DOTALL)
_TOOLS = re.compile(r"\s*<tools>(.*?)</tools>", re.DOTALL)
_ARGUMENTS = re.compile(r"[\"']arguments[\"']\s*:\s*")
_NAME = re.compile(r"[\"']name[\"']\s*:\s*[\"']([^\"']*)[\"']")
_FENCE = re.compile(r"```(?:bash|sh|shell|mswea_bash_command)?[ \t]*\n(.*?)\n?```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Action:
    """A call that stands inside a text at [start, end)."""

    start: int
    end: int
    name: str
    arguments: dict[str, Any] | None


Actions = Callable[[str], list[Action]]


def split_thoughts(text: str) -> tuple[list[Part], str]:
    """(leading thoughts, the rest); an orphan closing tag ends a thought that the prompt had opened."""
    if "</think" not in text:
        return [], text
    if match := _THINK.match(text):
        return [thinking(match[1].strip("\n"))], text[match.end() :]
    if "<think" not in text and (match := _ORPHAN.match(text)):
        return [thinking(match[1].strip("\n"))], text[match.end() :]
    return [], text


def has_calls(text: str) -> bool:
    return "<tool_call>" in text


def tagged_parts(text: str) -> list[Part]:
    """Text and calls in their order; the calls have no ids yet."""
    out: list[Part] = []
    at = 0
    for match in _CALL.finditer(text):
        if between := text[at : match.start()]:
            out.append(Text(text=between))
        out.append(_call(match[1].strip()))
        at = match.end()
    if text[at:]:
        out.append(Text(text=text[at:]))
    return out


def _call(inner: str) -> Call:
    if match := _FUNCTION.search(inner):
        return Call(id="", name=match[1], arguments=_parameters(match[2]), raw=match[2])
    value = _literal(inner)
    if not isinstance(value, dict):
        called = _NAME.search(inner)
        return Call(id="", name=called[1] if called else "", arguments=None, raw=inner)
    arguments = value.get("arguments", value.get("parameters"))
    name = str(value.get("name", ""))
    if isinstance(arguments, str):
        return Call(id="", name=name, arguments=parsed(arguments), raw=arguments)
    return Call(id="", name=name, arguments=arguments if isinstance(arguments, dict) else None, raw=_exact(inner))


def _exact(inner: str) -> str:
    """The arguments as they stand in the text, else the whole call."""
    if match := _ARGUMENTS.search(inner):
        try:
            _, end = json.JSONDecoder().raw_decode(inner, match.end())
            return inner[match.end() : end]
        except ValueError:
            pass
    return inner


def _literal(text: str) -> Any:
    """JSON, or the Python dict that some data sets print."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text) if len(text) < 100_000 else None
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _parameters(inner: str) -> dict[str, Any]:
    return {name: value.strip("\n") for name, value in _PARAMETER.findall(inner)}


def responses(text: str) -> list[str] | None:
    """The results in a message that holds nothing else, else None."""
    if "<tool_response>" not in text:
        return None
    found = _RESPONSE.findall(text)
    if not found or _RESPONSE.sub("", text).strip():
        return None
    return [_content(inner.strip("\n")) for inner in found]


def _content(inner: str) -> str:
    """`{"name", "content"}` around a result is the template's, not the tool's."""
    value = _literal(inner.strip()) if inner.strip().startswith("{") else None
    if (
        not isinstance(value, dict)
        or not set(value) <= {"name", "content", "tool_call_id", "id"}
        or "content" not in value
    ):
        return inner
    content = value["content"]
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def split_tools(system: str) -> tuple[str, list[dict[str, Any]]]:
    """(the prompt without its `<tools>` block, the schemas); a block that does not parse stays where it is."""
    for match in _TOOLS.finditer(system):
        if tools := _tools(match[1].strip()):
            return system[: match.start()] + system[match.end() :], tools
    return system, []


def _tools(block: str) -> list[dict[str, Any]]:
    value = _literal(block)
    if value is None:
        value = [_literal(row) for row in block.split("\n") if row.strip()]
    value = value if isinstance(value, list) else [value]
    return value if all(isinstance(v, dict) and ("function" in v or "name" in v) for v in value) else []


def function_actions(text: str) -> list[Action]:
    """`<function=NAME><parameter=...>` blocks."""
    return [Action(m.start(), m.end(), m[1], _parameters(m[2])) for m in _FUNCTION.finditer(text)]


def fenced_actions(text: str) -> list[Action]:
    """The one fenced block of a turn; none or several are no action (the harness refuses them)."""
    found = list(_FENCE.finditer(text))
    return [Action(m.start(), m.end(), "bash", {"command": m[1]}) for m in found] if len(found) == 1 else []


def last_fenced_action(text: str) -> list[Action]:
    """SWE-agent acts on the last fenced block."""
    found = list(_FENCE.finditer(text))
    return [Action(m.start(), m.end(), "bash", {"command": m[1]}) for m in found[-1:]]


def embed(text: str, actions: list[Action], new_id: Callable[[], str]) -> list[Part]:
    """Cut `text` at its actions; the parts one after the other are the text again."""
    out: list[Part] = []
    at = 0
    for action in actions:
        if action.start > at:
            out.append(Text(text=text[at : action.start]))
        raw = text[action.start : action.end]
        out.append(Call(id=new_id(), name=action.name, arguments=action.arguments, raw=raw, embedded=True))
        at = action.end
    if text[at:]:
        out.append(Text(text=text[at:]))
    return out


def thoughts(parts: list[Part]) -> bool:
    return any(isinstance(p, Thinking) for p in parts)
