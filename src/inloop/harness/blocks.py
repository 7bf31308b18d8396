"""Fenced blocks: how a call is written as plain text, by any model, in as few tokens as can be.

```read slug.py```          ```edit slug.py          ```bash
```test```                  old lines                command
```submit```                =======                  ```
                            new lines
                            ```
"""

from __future__ import annotations

import re
from typing import Any

from inloop.types import Call, Message, Part, Text, Thinking

BODIES = ("bash", "edit", "write")
"""Tools whose block has lines of its own; the others are one line."""

_OPEN = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,})(?P<name>[A-Za-z_]+)(?P<rest>[^\n]*)", re.M)
_SEPARATOR = re.compile(r"^(={7,})$", re.M)
_RANGE = re.compile(r"^(.*\S)\s+(\d+)-(\d+)$")
_THINK = re.compile(r"^\s*<think>(.*?)(</think>|\Z)", re.S)
ALIASES = {"sh": "bash", "shell": "bash"}
HELP = {
    "bash": "```bash\nCOMMAND\n```",
    "read": "```read FILE```",
    "edit": "```edit FILE\nold lines\n=======\nnew lines\n```",
    "write": "```write FILE\nlines\n```",
    "test": "```test```",
    "submit": "```submit```",
}


def describe(names: tuple[str, ...]) -> str:
    return "\n".join(HELP[n] for n in names)


def read_turn(text: str, known: tuple[str, ...], *, ended: bool = True) -> Message:
    """The sampled text as parts: the first block of a known tool is the call, whatever surrounds it is text.

    The parts' texts and the call's block, put together, are `text` again (but for the tags of a thought). `ended` is
    False where the turn was cut off: an unclosed block is then no call that could be run."""
    parts: list[Part] = []
    after_thoughts = 0
    if thought := _THINK.match(text):
        parts.append(Thinking(text=thought[1].strip("\n")))
        after_thoughts = thought.end()
    found = _first_block(text, after_thoughts, known)
    if not found:
        return Message(role="assistant", parts=(*parts, *_text(text[after_thoughts:])))
    opening, end, body = found
    before, raw, after = text[after_thoughts : opening.start()], text[opening.start() : end], text[end:]
    name = ALIASES.get(opening["name"], opening["name"])
    cut_off = body is None and not ended
    arguments = (
        None if cut_off else _arguments(name, _rest(opening), _unclosed(text, opening) if body is None else body)
    )
    call = Call(id="", name=name, arguments=arguments, raw=raw, embedded=True)
    return Message(role="assistant", parts=(*parts, *_text(before), call, *_text(after)))


def write_turn(message: Message) -> str:
    """A message as the text that would have been sampled; calls that carry their own block keep it."""
    thoughts = [p.text.strip("\n") for p in message.parts if isinstance(p, Thinking) and not p.hidden]
    out = "<think>\n" + "\n".join(thoughts) + "\n</think>\n\n" if thoughts else ""
    for part in message.parts:
        if isinstance(part, Text):
            out += part.text
        elif isinstance(part, Call):
            out += part.raw if part.embedded else _on_a_line(out, part)
    return out


def _on_a_line(before: str, call: Call) -> str:
    """A block opens at the start of a line."""
    return ("\n" if before and not before.endswith("\n") else "") + _block(call)


def _block(call: Call) -> str:
    try:
        return write_call(call.name, call.arguments or {})
    except (KeyError, TypeError, AttributeError):  # a tool of another harness: shown, and not read back as ours
        return _fenced(call.name, call.raw)


def write_call(name: str, arguments: dict[str, Any]) -> str:
    """One call as its block. Raises KeyError for another tool or a missing argument."""
    if name == "bash":
        return _fenced(name, arguments["command"])
    if name == "edit":
        old, new = arguments["old"], arguments["new"]
        longest = max((len(m) for m in _SEPARATOR.findall(f"{old}\n{new}")), default=6)
        return _fenced(f"edit {arguments['path']}", f"{old}\n{'=' * (longest + 1)}" + (f"\n{new}" if new else ""))
    if name == "write":
        return _fenced(f"write {arguments['path']}", arguments["content"].removesuffix("\n"))
    if name == "read":
        lines = f" {arguments.get('start') or 1}-{arguments['end']}" if arguments.get("end") else ""
        return f"```read {arguments['path']}{lines}```"
    if name in ("test", "submit"):
        return f"```{name}```"
    raise KeyError(name)


def _fenced(info: str, body: str) -> str:
    longest = max((len(m) for m in re.findall(r"^ {0,3}(`{3,})\s*$", body, re.M)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{body}\n{fence}"


def _first_block(text: str, start: int, known: tuple[str, ...]) -> tuple[re.Match[str], int, str | None] | None:
    """(opening line, end of the block, body); the body of a block that is never closed is None."""
    for opening in _OPEN.finditer(text, start):
        name = ALIASES.get(opening["name"], opening["name"])
        if name not in known or (name in BODIES and "`" in opening["rest"]):
            continue
        if name not in BODIES:
            return opening, *_one_line(text, opening)
        close = re.compile(rf"^ {{0,3}}`{{{len(opening['fence'])},}}[ \t]*$", re.M).search(text, opening.end())
        if not close:
            return opening, len(text), None
        return opening, close.end(), text[opening.end() + 1 : close.start()].removesuffix("\n")
    return None


def _one_line(text: str, opening: re.Match[str]) -> tuple[int, str]:
    """Closed on its own line, on the next one, or not at all: all three are one call."""
    at = opening["rest"].find("```")
    if at >= 0:
        closing = re.compile("`+").match(opening["rest"], at)
        assert closing
        return opening.start("rest") + closing.end(), ""
    close = re.compile(r"\n {0,3}`{3,}[ \t]*(?=\n|\Z)").match(text, opening.end())
    return (close.end() if close else opening.end()), ""


def _rest(opening: re.Match[str]) -> str:
    rest: str = opening["rest"]
    return rest.split("```", 1)[0].strip()


def _unclosed(text: str, opening: re.Match[str]) -> str:
    return text[opening.end() + 1 :].rstrip("\n")


def _arguments(name: str, rest: str, body: str) -> dict[str, Any] | None:
    """None when the block can't be read as a call of `name`."""
    if name == "bash":
        command = f"{rest}\n{body}".strip("\n")
        return {"command": command} if command.strip() else None
    if name in ("test", "submit"):
        return {}
    if not rest:
        return None
    if name == "read":
        lines = _RANGE.match(rest)
        return {"path": lines[1], "start": int(lines[2]), "end": int(lines[3])} if lines else {"path": rest}
    if name == "write":
        return {"path": rest, "content": body + "\n" if body else ""}
    return _edit(rest, body)


def _edit(path: str, body: str) -> dict[str, Any] | None:
    """The longest line of '=' parts old from new, so that a text with such lines can be written as well."""
    lines = _SEPARATOR.findall(body)
    longest = max(lines, key=len, default="")
    if not longest or lines.count(longest) > 1:
        return None
    old, _, new = f"\n{body}\n".partition(f"\n{longest}\n")
    return {"path": path, "old": old[1:], "new": new.removesuffix("\n")}


def _text(text: str) -> tuple[Text, ...]:
    return (Text(text=text),) if text else ()
