"""Turns of a training run as requests: what was said before each, the ids that the model saw, and what it did."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from inloop.engine.chat import to_wire
from inloop.engine.vllm import client
from inloop.errors import DataError, EngineFault
from inloop.harness.dialect import Dialect
from inloop.trace.store import ledger, read_trajectories
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Call, Message, Text, message

Wire = list[dict[str, Any]]
BUSY = (429, 503)
TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One turn."""

    name: str
    messages: Wire
    """What stood before it, as a client would send it."""
    prompt: list[int] | None
    """What the model saw, id by id; None where the trace holds no ids."""
    text: str
    """The turn, without its stop token."""
    calls: list[tuple[str, Any]] | None
    """(name, arguments) of its calls; None when one of them can't be read: what is served then is text."""


def read_calls(said: Message) -> list[tuple[str, Any]] | None:
    calls = [(c.name, c.arguments) for c in said.all_calls]
    return None if any(arguments is None for _, arguments in calls) else calls


def as_sent(said: Message) -> dict[str, Any]:
    """A message as a client sends it back: a call that can't be read came as text, and goes back as text."""
    if said.role == "assistant" and any(c.arguments is None and not c.embedded for c in said.calls):
        return {"role": "assistant", "content": "".join(_written(p) for p in said.parts)}
    return to_wire(said)


def _written(part: Any) -> str:
    return part.raw if isinstance(part, Call) else part.text if isinstance(part, Text) else ""


def turns(trajectories: Iterable[Trajectory], dialect: Dialect) -> list[Replay]:
    """Every sampled turn of every context, once."""
    out: dict[str, Replay] = {}
    for trajectory in trajectories:
        for path in trajectory.paths():
            for at, node in enumerate(path):
                name = f"{trajectory.id}/{node.id}"
                if node.sampled and at and name not in out:
                    out[name] = _replay(name, path[:at], node, dialect)
    return list(out.values())


def _replay(name: str, before: Sequence[Node], node: Node, dialect: Dialect) -> Replay:
    known = all(n.token_ids is not None for n in before if n.sampled) and any(n.token_ids for n in before)
    prompt = [t for n in before for t in n.token_ids or ()] if known else None
    ids = list(node.token_ids or dialect.encode_turn(node.message))
    ended = bool(ids) and ids[-1] in dialect.stop_token_ids
    return Replay(
        name=name,
        messages=[as_sent(n.message) for n in before],
        prompt=prompt,
        text=dialect.decode(ids[:-1] if ended else ids),
        calls=read_calls(node.message),
    )


def probe(dialect: Dialect) -> list[Replay]:
    """A made-up episode, where no trajectories are given: each tool of the harness is called once."""
    samples = {"bash": {"command": "ls"}, "read": {"path": "a.py"}, "write": {"path": "a.py", "content": "x = 1\n"},
               "edit": {"path": "a.py", "old": "x = 1", "new": "x = 2"}, "test": {}, "submit": {}}  # fmt: skip
    said = [message("system", dialect.system(dialect.tools, "")), message("user", "a.py: mend it.")]
    nodes = [Node(id=f"p{i}", parent=None, message=m) for i, m in enumerate(said)]
    for node, ids in zip(nodes, dialect.split_open(said), strict=True):
        node.token_ids = ids
    out = []
    for number, tool in enumerate(dialect.tools, 1):
        call = Call(id=f"{tool}-{number}", name=tool, arguments=samples[tool], raw="")
        ids = dialect.encode_turn(Message(role="assistant", parts=(Text(text="Next."), call)))
        turn = Node(id=tool, parent=None, message=dialect.parse(ids), sampled=True, token_ids=ids)
        out.append(_replay(f"probe/{tool}", nodes, turn, dialect))
        shown = message("tool" if turn.message.calls else "user", f"result {number}", call_id=call.id)
        named = _with_ids(turn, call.id)
        nodes += [named, Node(id=f"r{number}", parent=None, message=shown, token_ids=dialect.extend(True, [shown]))]
    return out


def _with_ids(turn: Node, call_id: str) -> Node:
    parts = tuple(replace(p, id=call_id) if isinstance(p, Call) else p for p in turn.message.parts)
    return replace(turn, message=replace(turn.message, parts=parts))


def trained_prompts(folder: Path) -> dict[str, list[int]]:
    """Turn -> the ids before it in the samples that were trained: what a text-only trace was rendered as."""
    from inloop.data.sample import read_samples

    out = {}
    for sample in read_samples(folder)[0]:
        for span in sample.spans:
            if span.role == "assistant":
                out[f"{sample.trajectory}/{span.node}"] = sample.input_ids[: span.start]
    return out


def read(paths: Sequence[Path], dialect: Dialect, most: int, samples: Path | None = None) -> list[Replay]:
    """At most `most` turns, spread evenly over all. Raises DataError when there is none."""
    if not paths:
        return probe(dialect)
    known = trained_prompts(samples) if samples else {}
    found: list[Replay] = []
    for path in paths:
        if not ledger(path).is_file():
            raise DataError(f"{ledger(path)}: no such file", fix="give a run folder or its trajectories.jsonl")
        found += turns(read_trajectories(path)[0], dialect)
    if not found:
        raise DataError(f"{paths[0]}: no sampled turn to replay", fix="give trajectories of the checkpoint's own run")
    found = [replace(turn, prompt=turn.prompt or known.get(turn.name)) for turn in found]
    step = max(1.0, len(found) / most)
    return [found[int(i * step)] for i in range(min(most, len(found)))]


class Endpoint:
    """A served model, ours or vLLM."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self._http = client(self.url, token)
        try:
            cards = self._get("/v1/models")["data"]
            card = next((c for c in cards if c.get("parent")), cards[0])  # vLLM lists an adapter after its base
            self.dtype = self._dtype()
        except BaseException:
            self.close()
            raise
        self.model: str = card["id"]
        self.ours: dict[str, Any] | None = card.get("inloop")

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """One chat completion; waits where the queue is full. Raises EngineFault, DataError for a refusal."""
        for attempt in range(TRIES):
            try:
                response = self._http.post("/v1/chat/completions", json={"model": self.model, **body})
            except httpx.HTTPError as error:
                raise EngineFault(f"{self.url}: {error!r}", fix="is it running?") from error
            if response.status_code not in BUSY:
                break
            time.sleep(0.2 * 2**attempt)
        if response.is_success:
            answer: dict[str, Any] = response.json()
            return answer
        kind = EngineFault if response.status_code >= 500 or response.status_code in BUSY else DataError
        raise kind(f"{self.url}: HTTP {response.status_code}: {response.text[:300]}")

    def close(self) -> None:
        self._http.close()

    def _dtype(self) -> str:
        try:
            told = self._get("/server_info")
            return str(told["vllm_config"]["model_config"]["dtype"]).removeprefix("torch.")
        except (EngineFault, KeyError, TypeError):
            return "unknown"

    def _get(self, path: str) -> Any:
        try:
            response = self._http.get(path, timeout=30)
        except httpx.HTTPError as error:
            raise EngineFault(f"{self.url}{path}: {error!r}", fix="start it, or check --url and --token") from error
        if response.status_code == 401:
            raise EngineFault(f"{self.url}: it asks for a token", fix="give --token, or set INLOOP_TOKEN")
        if not response.is_success:
            raise EngineFault(f"{self.url}{path}: HTTP {response.status_code}")
        return response.json()
