"""Sessions as agents record them: Claude Code, Codex and chat messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Call = tuple[str, dict[str, Any], str]
"""(tool, arguments, result); a result that begins with '!' is an error."""


def claude(file: Path, asked: Sequence[str], calls: Sequence[Call], *, cwd: str, began: float) -> Path:
    """One message of the person, or several, each before its share of the calls."""
    records: list[dict[str, Any]] = []

    def add(kind: str, message: dict[str, Any]) -> None:
        n = len(records)
        time = datetime.fromtimestamp(began + n, UTC).isoformat().replace("+00:00", "Z")
        records.append(
            {"type": kind, "uuid": f"{file.stem}-{n}", "parentUuid": f"{file.stem}-{n - 1}" if n else None,
             "sessionId": file.stem, "cwd": cwd, "version": "2.1.0", "timestamp": time, "message": message}
        )  # fmt: skip

    share = -(-len(calls) // len(asked))
    for at, words in enumerate(asked):
        add("user", {"role": "user", "content": words})
        for number, (tool, given, result) in enumerate(calls[at * share : (at + 1) * share], at * share):
            use = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": given}
            add("assistant", {"role": "assistant", "id": f"msg_{number}", "model": "claude-x", "content": [use]})
            text = result.removeprefix("!")
            back = {
                "type": "tool_result",
                "tool_use_id": f"toolu_{number}",
                "content": text,
                "is_error": text != result,
            }
            add("user", {"role": "user", "content": [back]})
    return lines(file, records)


def codex(file: Path, asked: str, calls: Sequence[Call], *, cwd: str, commit: str) -> Path:
    """`apply_patch` is a custom tool, whose argument is {'input': patch}."""
    stamp = "2026-01-15T09:00:00.000Z"
    meta = {"id": file.stem, "cwd": cwd, "cli_version": "0.99", "git": {"commit_hash": commit, "branch": "main"}}
    records: list[dict[str, Any]] = [{"timestamp": stamp, "type": "session_meta", "payload": meta}]

    def item(**payload: Any) -> None:
        records.append({"timestamp": stamp, "type": "response_item", "payload": payload})

    item(type="message", role="user", content=[{"type": "input_text", "text": asked}])
    for number, (tool, given, result) in enumerate(calls):
        call_id = f"call_{number}"
        if "input" in given:
            item(type="custom_tool_call", name=tool, input=given["input"], call_id=call_id)
            item(type="custom_tool_call_output", call_id=call_id, output=result)
        else:
            item(type="function_call", name=tool, arguments=json.dumps(given), call_id=call_id)
            item(type="function_call_output", call_id=call_id, output=result)
    return lines(file, records)


def chat(file: Path, asked: str, calls: Sequence[Call]) -> Path:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Work."}, {"role": "user", "content": asked}]
    for number, (tool, given, result) in enumerate(calls):
        function = {"name": tool, "arguments": json.dumps(given)}
        one = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [one]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    return lines(file, [{"messages": messages}])


def lines(file: Path, records: Sequence[dict[str, Any]]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(r) + "\n" for r in records))
    return file
