"""The agent: query, act, observe, until something stops it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from inloop.engine.base import ContextFull
from inloop.errors import EngineFault, SandboxFault
from inloop.harness.config import HarnessConfig
from inloop.harness.guides import guides
from inloop.harness.policy import Conversation, Policy, Turn, turn_seed
from inloop.harness.sensors import sense, with_findings
from inloop.harness.tools import Observation, Toolbox
from inloop.sandbox.base import Sandbox
from inloop.tasks.task import Task
from inloop.trace.trajectory import Node
from inloop.types import Call, Message, StopReason, Text, message


class Cancel:
    """Set from any thread; what was attached is closed at once, so that a running command ends."""

    def __init__(self) -> None:
        self._event, self._lock = threading.Event(), threading.Lock()
        self._closers: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        return self._event.wait(seconds)

    def set(self) -> None:
        with self._lock:
            self._event.set()
            closers, self._closers = self._closers, []
        for close in closers:
            with contextlib.suppress(Exception):  # one that fails must not keep the others open
                close()

    def attach(self, close: Callable[[], None]) -> Callable[[], None]:
        """`close` is called when the cancel comes, at once if it has; returns what detaches it."""
        with self._lock:
            if not self._event.is_set():
                self._closers.append(close)
                return lambda: self._detach(close)
        close()
        return lambda: None

    def _detach(self, close: Callable[[], None]) -> None:
        with self._lock:
            if close in self._closers:
                self._closers.remove(close)


@dataclass(kw_only=True)
class Episode:
    """One run of the agent on one task, and all that it leaves behind."""

    task: Task
    sandbox: Sandbox
    policy: Policy
    config: HarnessConfig
    seed: int = 0
    key: str = ""
    """Names the conversation to the engine."""
    cancel: Cancel = field(default_factory=Cancel)
    nodes: list[Node] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    timings: dict[str, float] = field(default_factory=lambda: {"sampling": 0.0, "tools": 0.0, "tests": 0.0})
    events: list[dict[str, object]] = field(default_factory=list)
    stop: StopReason | None = None
    _pending: list[Node] = field(default_factory=list)
    """Written down, not yet shown to the model."""
    _invalid_in_row: int = 0

    def run(self) -> StopReason:
        """The loop. Raises nothing that belongs to the agent, the engine or the sandbox: that is the stop reason."""
        self._begin()
        try:
            if self.nodes:
                self.resume()
            else:
                self.open()
            while not (stop := self.exhausted()):
                turn = self.query()
                results = self.act(turn)
                if stop := self.stopped_by(results):
                    break
                self.observe(results)
        except ContextFull as full:
            stop = self._event(StopReason.CONTEXT_FULL, full)
        except (SandboxFault, EngineFault) as fault:
            stop = self._event(self._why(fault), fault)
        finally:
            self._end()
        self.stop = stop
        return stop

    def open(self) -> None:
        """What the agent is told first."""
        texts = guides(self.task, self.config)
        self.events += [{"kind": "guide", "name": name, "chars": len(text)} for name, text in texts.items()]
        system = message("system", self.policy.neutral(self.policy.system("\n".join(texts.values()))))
        instruction = message("user", self.policy.neutral(self.task.instruction.strip()))
        self._pending = [self._add(system), self._add(instruction)]

    def resume(self) -> None:
        """Go on with the nodes of an earlier run, whose last turn is finished: what followed it is pending."""
        last = max((i for i, n in enumerate(self.nodes) if n.sampled), default=-1)
        self._pending = self.nodes[last + 1 :]
        if last >= 0:
            self._talk.restore(self.nodes[: last + 1])

    def exhausted(self) -> StopReason | None:
        """Which budget is used up, if one is."""
        if self.cancel.is_set():
            return StopReason.CANCELLED
        if self.remaining() <= 0:
            return StopReason.DEADLINE
        if self.counts["turns"] >= self.config.max_turns:
            return StopReason.TURN_LIMIT
        if self.counts["sampled_tokens"] >= self.config.max_tokens:
            return StopReason.TOKEN_LIMIT
        return None

    def query(self) -> Turn:
        """Show what is pending, sample a turn and write it down."""
        show = self._talk.observe if self.counts["turns"] else self._talk.open
        added = show([n.message for n in self._pending])
        budget = min(self.config.max_turn_tokens, self.config.max_tokens - self.counts["sampled_tokens"])
        started = time.monotonic()
        try:
            turn = self._talk.query(budget, turn_seed(self.seed, self.counts["turns"]))
        finally:
            self._took("sampling", started)
        for node, ids in zip(self._pending, added, strict=True):
            node.token_ids = ids  # only now: what did not fit, or no query showed, was never seen
        self._pending = []
        return self._record(turn)

    def act(self, turn: Turn) -> list[tuple[Call | None, Observation]]:
        """Run the calls of a turn in order, up to a submit; a turn without one is answered by how to call."""
        results: list[tuple[Call | None, Observation]] = []
        for call in turn.message.all_calls:
            started = time.monotonic()
            observation = self._toolbox.call(call.name, call.arguments)
            self._took(observation.kind, started)
            results.append((call, self._sensed(observation)))
            if observation.submitted:
                break
        if not results:
            cut = "the turn was cut off before a whole call" if turn.cut else "no call found"
            results = [(None, Observation(text=f"error: {cut}; {self._how()}", is_error=True, valid=False))]
        self._count(turn, results)
        return results

    def stopped_by(self, results: list[tuple[Call | None, Observation]]) -> StopReason | None:
        if any(o.submitted for _, o in results):
            return StopReason.SUBMITTED
        return StopReason.AGENT_ERROR if self._invalid_in_row > self.config.max_invalid else None

    def observe(self, results: list[tuple[Call | None, Observation]]) -> None:
        """Write the results down for the next query to show."""
        self._pending = [self._add(self._answer(call, observation)) for call, observation in results]

    def remaining(self) -> float:
        """Seconds until the episode's deadline."""
        return self._deadline - time.monotonic()

    def _begin(self) -> None:
        limit = min(self.config.wall_seconds, self.task.limits.wall_seconds)
        self._deadline = time.monotonic() + limit
        self._talk: Conversation = self.policy.begin(self.key)
        self._toolbox = Toolbox(self.task, self.sandbox, self.config, self.remaining, self.policy.usage)

        self._timer = threading.Timer(limit, self._talk.close)  # a sampled turn ends at the deadline as well
        self._timer.daemon = True
        self._timer.start()
        self._detach = self.cancel.attach(self._talk.close)

    def _end(self) -> None:
        self._timer.cancel()
        self._detach()
        with contextlib.suppress(EngineFault):
            self._talk.close()

    def _why(self, fault: Exception) -> StopReason:
        """What ends by our own hand, on a cancel or at the deadline, is no fault."""
        if self.cancel.is_set():
            return StopReason.CANCELLED
        if self.remaining() <= 0:
            return StopReason.DEADLINE
        return StopReason.SANDBOX_FAULT if isinstance(fault, SandboxFault) else StopReason.ENGINE_FAULT

    def _add(self, said: Message) -> Node:
        parent = self.nodes[-1].id if self.nodes else None
        self.nodes.append(Node(id=f"n{len(self.nodes)}", parent=parent, message=said))
        return self.nodes[-1]

    def _record(self, turn: Turn) -> Turn:
        node = self._add(turn.message)
        node.sampled = True
        node.token_ids, node.logprobs, node.weight_version = turn.token_ids, turn.logprobs, turn.weight_version
        node.seconds = round(turn.seconds, 4)
        self.counts.update(turns=1, sampled_tokens=turn.tokens)
        self.counts.update(prompt_tokens=turn.prompt_tokens, prompt_tokens_computed=turn.computed)
        return turn

    def _sensed(self, observation: Observation) -> Observation:
        """The observation with what the sensors found in the edited file."""
        if not observation.edited or not self.config.sensors:
            return observation
        started = time.monotonic()
        findings = sense(self._toolbox, observation.edited)
        self._took("sensors", started)
        for found in findings:
            self.counts[f"sensor_{found.sensor}"] += bool(found.text)
            self.counts["test_failures"] += found.tests_failed
        return replace(observation, text=with_findings(observation, findings))

    def _count(self, turn: Turn, results: list[tuple[Call | None, Observation]]) -> None:
        invalid = sum(not o.valid for _, o in results)
        self._invalid_in_row = self._invalid_in_row + 1 if invalid == len(results) else 0
        self.counts.update(
            invalid_calls=invalid,
            tool_errors=sum(o.is_error and o.valid and o.kind == "tools" for _, o in results),
            test_failures=sum(o.tests_failed for _, o in results),
            tests=sum(o.kind == "tests" for _, o in results),
            calls=len(turn.message.all_calls),
            edits=sum(bool(o.edited) for _, o in results),
            cut_turns=turn.cut,
        )
        _note_surplus(turn.message, self.counts)

    def _answer(self, call: Call | None, observation: Observation) -> Message:
        """A result as its own role where calls have one, as the user's where they are part of the text."""
        text = observation.text.encode("utf-8", "replace").decode()  # what no tokenizer takes: lone surrogates
        said = (Text(text=self.policy.neutral(text)),)
        tool = call is not None and not call.embedded
        return Message(
            role="tool" if tool else "user",
            parts=said,
            call_id=call.id if call else None,
            is_error=observation.is_error,
            origin=None if tool else "harness",
        )

    def _how(self) -> str:
        return self.policy.usage(self.config.tools[0])

    def _took(self, what: str, started: float) -> None:
        self.timings[what] = self.timings.get(what, 0.0) + time.monotonic() - started

    def _event(self, stop: StopReason, error: Exception) -> StopReason:
        self.events.append({"kind": stop.value, "message": str(error).partition("\n")[0][:500]})
        return stop


def _note_surplus(said: Message, counts: Counter[str]) -> None:
    """Text behind an embedded call had no effect: counted, since it is what a model does that runs on."""
    last = said.parts[-1] if said.parts else None
    if isinstance(last, Text) and last.text.strip() and any(isinstance(p, Call) and p.embedded for p in said.parts):
        counts["text_after_call"] += 1
