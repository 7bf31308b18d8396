"""Harbor's ATIF 1.8: one document a context, sub-agents inside the document that spawned them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from inloop.trace.trajectory import Node, Trajectory
from inloop.trace.write.chat import spoken
from inloop.trace.write.losses import Losses, contexts, note_common
from inloop.types import Call, Image, Message, Thinking

NAME = "atif"
VERSION = "ATIF-v1.8"
_SOURCES = {"system": "system", "user": "user", "assistant": "agent", "tool": "user"}


def write(trajectory: Trajectory, losses: Losses) -> list[dict[str, Any]]:
    """What two contexts share is copied context in the second."""
    links = {link["root"]: link for link in trajectory.meta.get("subagents", ()) if "root" in link}
    documents: list[dict[str, Any]] = []
    children: list[tuple[dict[str, Any], str | None]] = []
    for number, (path, shared) in enumerate(contexts(trajectory, losses)):
        note_common(path, losses)
        own = trajectory.id if not number else f"{trajectory.id}#{number}"
        document = _document(trajectory, own, path, shared, losses)
        link = links.get(path[0].id)
        if link is None:
            documents.append(document)
        else:
            children.append((document, link.get("call_id")))
    for child, call_id in children:
        _adopt(documents, child, call_id)
    return documents


def _document(trajectory: Trajectory, own: str, path: list[Node], shared: set[str], losses: Losses) -> dict[str, Any]:
    agent: dict[str, Any] = {
        "name": str(trajectory.agent.get("name") or "inloop"),
        "version": str(trajectory.agent.get("version") or "unknown"),
    }
    if trajectory.model:
        agent["model_name"] = trajectory.model
    if trajectory.tools:
        agent["tool_definitions"] = trajectory.tools
    steps = _steps(path, shared, losses)
    out: dict[str, Any] = {"schema_version": VERSION, "session_id": trajectory.id, "trajectory_id": own, "agent": agent}
    out["steps"] = [{"step_id": i, **step} for i, step in enumerate(steps, 1)]
    if trajectory.reward and trajectory.reward.value is not None:
        out["extra"] = {"reward": trajectory.reward.value}
    return out


def _steps(path: list[Node], shared: set[str], losses: Losses) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    caller: dict[str, dict[str, Any]] = {}
    """call id -> the newest step that made it."""
    seen: list[int] | None = []
    """Ids of the path so far; None when a node has none."""
    for node in path:
        message = node.message
        if message.role == "tool" and message.call_id in caller:
            _observe(caller[message.call_id], message, steps, losses)
        else:
            step = _step(node, node.id in shared, seen)
            steps.append(step)
            caller.update((c.id, step) for c in message.calls)
            if message.role == "tool":
                losses["results without a call become user steps"] += 1
        seen = seen + node.token_ids if seen is not None and node.token_ids is not None else None
        if not node.sampled and node.token_ids:
            losses["which context message a prompt token belongs to"] += 1
    return steps


def _step(node: Node, shared: bool, seen: list[int] | None) -> dict[str, Any]:
    message = node.message
    step: dict[str, Any] = {"source": _SOURCES[message.role], "message": _content(message)}
    if node.time is not None:
        step["timestamp"] = datetime.fromtimestamp(node.time, UTC).isoformat().replace("+00:00", "Z")
    if message.origin and message.origin != "copy":
        step["extra"] = {"origin": message.origin}
    if message.role != "assistant":
        return step
    if thoughts := spoken(message):
        step["reasoning_content"] = thoughts
    if message.calls:
        step["tool_calls"] = [_call(c) for c in message.calls]
    if shared or not node.sampled:
        step["is_copied_context"] = True
        return step
    step["llm_call_count"] = 1
    if node.token_ids:
        step["metrics"] = {"completion_token_ids": node.token_ids}
        if node.logprobs is not None:
            step["metrics"]["logprobs"] = node.logprobs
        if seen:
            step["metrics"]["prompt_token_ids"] = seen
    return step


def _call(call: Call) -> dict[str, Any]:
    """`arguments` must be an object: what the model wrote otherwise stands in `extra`."""
    arguments = call.arguments if call.arguments is not None else {}
    out: dict[str, Any] = {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments}
    if call.arguments is None or json.dumps(arguments, ensure_ascii=False) != call.raw:
        out["extra"] = {"raw_arguments": call.raw, "malformed": call.arguments is None}
    return out


def _observe(step: dict[str, Any], message: Message, steps: list[dict[str, Any]], losses: Losses) -> None:
    if step is not steps[-1]:
        losses["where a late result stood"] += 1
    item: dict[str, Any] = {"source_call_id": message.call_id, "content": _content(message)}
    if message.is_error:
        item["extra"] = {"is_error": True}
    step.setdefault("observation", {"results": []})["results"].append(item)


def _content(message: Message) -> Any:
    if not any(isinstance(p, Image) for p in message.parts):
        return message.text
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Image):
            source = {"media_type": part.media_type, "path": f"sha256:{part.sha256}"}
            blocks.append({"type": "image", "source": source})
        elif not isinstance(part, Thinking) and (text := getattr(part, "text", "")):
            blocks.append({"type": "text", "text": text})
    return blocks


def _adopt(documents: list[dict[str, Any]], child: dict[str, Any], call_id: str | None) -> None:
    """Into the document whose step spawned it; without a known call it stands alone."""
    for document in documents:
        for step in document["steps"]:
            for item in step.get("observation", {}).get("results", ()):
                if call_id and item.get("source_call_id") == call_id:
                    document.setdefault("subagent_trajectories", []).append(child)
                    item["subagent_trajectory_ref"] = [{"trajectory_id": child["trajectory_id"]}]
                    return
    documents.append(child)
