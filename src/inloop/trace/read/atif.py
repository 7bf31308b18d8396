"""Harbor's ATIF 1.0 to 1.8: one flat list of steps, with token ids, copied context and sub-agents."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from inloop.trace.read.build import Forest, call, moment, obj, result, thinking, tools_of
from inloop.trace.read.messages import parts_of
from inloop.trace.read.place import Bad, Place
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Message, Part, Role, Text

NAME = "atif"
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "agent": "assistant"}


def sniff(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("steps"), list) and "schema_version" in row


def read(row: dict[str, Any], place: Place) -> Trajectory:
    agent = obj(row.get("agent"))
    name = str(row.get("trajectory_id") or row.get("session_id") or "")
    forest = Forest(
        NAME, place, name=name, version=row.get("schema_version"), continued=row.get("continued_trajectory_ref")
    )
    spawned: dict[str, str] = {}
    _steps(forest, row["steps"], spawned)
    for child in row.get("subagent_trajectories") or ():
        _subagent(forest, child, spawned)
    trajectory = forest.done()
    trajectory.agent = {k: agent[k] for k in ("name", "version") if isinstance(agent.get(k), str)}
    trajectory.model = agent.get("model_name") or None
    trajectory.tools = tools_of(agent.get("tool_definitions"), place)
    _prompt_ids(trajectory, row["steps"])
    return trajectory


def _subagent(forest: Forest, child: Any, spawned: dict[str, str]) -> None:
    if not isinstance(child, dict) or not isinstance(child.get("steps"), list) or not child["steps"]:
        forest.place.block("a sub-agent trajectory without steps")
        return
    forest.new_context()
    first = len(forest.trajectory.nodes)
    _steps(forest, child["steps"], spawned)
    agent = child.get("agent")
    name = str(agent.get("name", "")) if isinstance(agent, dict) else ""
    own = str(child.get("trajectory_id") or child.get("session_id") or "")
    forest.subagent(forest.trajectory.nodes[first], spawned.get(own), name)
    for grandchild in child.get("subagent_trajectories") or ():
        _subagent(forest, grandchild, spawned)


def _steps(forest: Forest, steps: list[Any], spawned: dict[str, str]) -> None:
    for step in steps:
        if not isinstance(step, dict) or step.get("source") not in _ROLES:
            raise Bad("a step without a known source")
        node = _step(forest, step)
        observation = step.get("observation")
        if isinstance(observation, dict):
            _results(forest, observation.get("results") or [], step, spawned)
        _tokens(node, step.get("metrics"), forest.place)


def _step(forest: Forest, step: dict[str, Any]) -> Node:
    role = _ROLES[step["source"]]
    extra = obj(step.get("extra"))
    parts: list[Part] = [thinking(step["reasoning_content"])] if step.get("reasoning_content") else []
    parts += parts_of(step.get("message"), forest.place)
    parts += [_call(c, forest.place) for c in step.get("tool_calls") or ()]
    copied = bool(step.get("is_copied_context")) or step.get("llm_call_count") == 0
    origin = extra.get("origin") or ("copy" if step.get("is_copied_context") else None)
    said = Message(role=role, parts=tuple(parts), origin=origin if isinstance(origin, str) else None)
    sampled = role == "assistant" and not copied
    return forest.add(said, sampled=sampled, time=moment(step.get("timestamp")), **_parent(forest, extra))


def _parent(forest: Forest, extra: dict[str, Any]) -> dict[str, Any]:
    """Our own exports say where a step starts a new context."""
    return {"parent": None} if extra.get("new_context") else {}


def _call(value: Any, place: Place) -> Call:
    if not isinstance(value, dict):
        raise Bad("a tool call is not an object")
    made = call(value.get("tool_call_id"), value.get("function_name"), value.get("arguments"))
    extra = obj(value.get("extra"))
    if isinstance(extra.get("raw_arguments"), str):  # our own exports keep what the model wrote
        return replace(made, raw=extra["raw_arguments"], arguments=None if extra.get("malformed") else made.arguments)
    return made


def _results(forest: Forest, results: list[Any], step: dict[str, Any], spawned: dict[str, str]) -> None:
    calls = [c.get("tool_call_id") for c in step.get("tool_calls") or ()]
    for number, item in enumerate(results):
        if not isinstance(item, dict):
            raise Bad("an observation result is not an object")
        own = item.get("source_call_id") or (calls[number] if number < len(calls) else None)
        parts = tuple(parts_of(item.get("content"), forest.place)) or (Text(text=""),)
        extra = item.get("extra")
        failed = bool(isinstance(extra, dict) and extra.get("is_error"))
        role: Role = "tool" if calls else "user"
        forest.add(result(own, "", role=role, parts=parts, is_error=failed, origin=None if calls else "observation"))
        references = item.get("subagent_trajectory_ref") or []
        for reference in references if isinstance(references, list) else [references]:
            if isinstance(reference, dict) and own:
                spawned[str(reference.get("trajectory_id") or reference.get("session_id") or "")] = own


def _tokens(node: Node, metrics: Any, place: Place) -> None:
    if not isinstance(metrics, dict) or not node.sampled:
        return
    ids, logprobs = metrics.get("completion_token_ids"), metrics.get("logprobs")
    if not ids:
        return
    if not _are_ids(ids):
        place.block("completion token ids that are no ids")
        return
    node.token_ids = ids
    if isinstance(logprobs, list) and len(logprobs) == len(ids) and all(_is_logprob(p) for p in logprobs):
        node.logprobs = logprobs
    elif logprobs:
        place.block("log-probabilities that do not fit their token ids")


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(i) is int and i >= 0 for i in value)


def _is_logprob(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value <= 0


def _prompt_ids(trajectory: Trajectory, steps: list[Any]) -> None:
    """Where each step also holds its prompt's ids, what a turn added to them belongs to the messages before it."""
    metrics = [s.get("metrics") for s in steps if s.get("source") == "agent"]
    prompts = [m.get("prompt_token_ids") if isinstance(m, dict) else None for m in metrics]
    agents = [n for n in trajectory.nodes if n.message.role == "assistant"]
    if len(trajectory.leaves()) != 1 or not prompts or not all(p and _are_ids(p) for p in prompts):
        return
    if len(agents) != len(prompts) or any(a.token_ids is None for a in agents):
        return
    seen: list[int] = []
    order = {n.id: i for i, n in enumerate(trajectory.nodes)}
    filled: dict[str, list[int]] = {}
    for node, prompt in zip(agents, prompts, strict=True):
        assert prompt is not None and node.token_ids is not None
        if prompt[: len(seen)] != seen or order[node.id] == 0:
            return
        filled[trajectory.nodes[order[node.id] - 1].id] = prompt[len(seen) :]
        seen = prompt + node.token_ids
    for node in trajectory.nodes[: order[agents[-1].id]]:
        if node.token_ids is None:
            node.token_ids = filled.get(node.id, [])
