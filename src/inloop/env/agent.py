"""The smallest agent that owns its loop: OpenAI-style chat with tool calls against the environment's tools."""

from __future__ import annotations

import json
from typing import Any

SECONDS = 600.0
"""Of one model call, queueing included."""


def chat_loop(endpoint: Any, session: Any) -> None:
    """Ask, call the tools, answer, until the episode is over, the model calls nothing, or its calls are used up."""
    import httpx

    messages = session.initial_messages()
    head = {"Authorization": f"Bearer {endpoint.key}"}
    with httpx.Client(base_url=endpoint.url, headers=head, timeout=SECONDS, trust_env=False) as http:
        while True:
            body = {"model": endpoint.model, "messages": messages, "tools": session.schemas()}
            answer = http.post("/chat/completions", json=body)
            answer.raise_for_status()
            said = answer.json()["choices"][0]["message"]
            calls = said.get("tool_calls") or []
            kept = ("role", "content", "reasoning_content", "tool_calls")
            messages.append({k: said[k] for k in kept if said.get(k)})
            for call in calls:
                result = session.call_tool(call["function"]["name"], _arguments(call["function"].get("arguments")))
                messages.append({"role": "tool", "tool_call_id": call.get("id"), "content": str(result.data)})
                if result.done:
                    return
            if not calls:
                return


def _arguments(raw: Any) -> dict[str, Any]:
    """What can't be read is no argument: the tool then says what is missing."""
    try:
        value = json.loads(raw) if isinstance(raw, str) else raw
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}
