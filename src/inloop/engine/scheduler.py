"""Continuous batching: every step takes the next token of each running request, and prompts ride along."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from torch import Tensor

from inloop.engine.base import Completion, ContextFull, Sampling
from inloop.engine.batch import Batch, Segment
from inloop.engine.forward import Forward
from inloop.engine.sampling import sample
from inloop.engine.slots import Seat, Seats, Slot

CHUNK = 256
"""Prompt tokens a step, so that a long prompt does not hold up who is decoding."""

Outcome = Completion | Exception


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    prompt: Sequence[int]
    sampling: Sampling
    done: Callable[[Outcome], None]
    """Called once, from the engine's thread."""
    conversation: str | None = None
    owner: object = None
    """Whose request it is, and what they call it: for `abort`."""
    name: int = 0
    on_token: Callable[[int, float], None] | None = None
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    slot: Slot | None = None
    computed: int = 0
    """Tokens of prompt + answer that are in the cache."""
    reused: int = 0
    version: int = 0
    aborted: bool = False
    started: float = field(default_factory=time.monotonic)
    random: random.Random = field(default_factory=random.Random)

    def pending(self, limit: int) -> list[int]:
        """The next tokens to compute: a chunk of the prompt, or the token sampled last."""
        if self.computed < len(self.prompt):
            return list(self.prompt[self.computed : self.computed + limit])
        return self.token_ids[-1:]


@dataclass(slots=True)
class Meters:
    """What the engine did since it started."""

    steps: int = 0
    requests: int = 0
    sampled_tokens: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    busy_seconds: float = 0.0
    forward_seconds: float = 0.0
    sample_seconds: float = 0.0


class Scheduler:
    """Owns the slots; not thread-safe: one thread calls `add` and `step`."""

    def __init__(
        self, forward: Forward, *, slots: int, max_model_len: int, vocabulary: int, stops: frozenset[int]
    ) -> None:
        self.forward, self.max_model_len, self.vocabulary, self.stops = forward, max_model_len, vocabulary, stops
        self.seats = Seats(slots, share=forward.shares_prefixes)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.version = 0
        """The caller's number of the present weights."""
        self._epoch = 0
        """Our own: a version may be used twice, and a cache of other weights must not be."""
        self.meters = Meters()

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.running

    def weights_changed(self, version: int) -> None:
        """Running requests go on; what rests in the cache is computed anew when it is next wanted."""
        self.version = version
        self._epoch += 1

    def measured(self) -> dict[str, float]:
        now = {"running": len(self.running), "waiting": len(self.waiting), "cpu_seconds": time.process_time()}
        return {**asdict(self.meters), **now}

    def add(self, request: Request) -> None:
        if len(request.prompt) >= self.max_model_len:
            request.done(ContextFull(len(request.prompt), self.max_model_len))
        elif not request.prompt or request.sampling.max_tokens < 1:
            request.done(ValueError("an empty prompt, or max_tokens below 1"))
        elif not 0 <= min(request.prompt) <= max(request.prompt) < self.vocabulary:
            request.done(ValueError(f"a token id outside the vocabulary of {self.vocabulary}"))
        else:
            if request.sampling.seed is not None:
                request.random.seed(request.sampling.seed)
            self.waiting.append(request)

    def step(self) -> None:
        """Admit who fits, compute one batch, sample, hand out what is finished."""
        began = time.monotonic()
        self._drop_aborted()
        self._admit()
        if self.running:
            batch, answering = self._batch()
            logits = self.forward.logits(batch)
            forwarded = time.monotonic()
            if answering:
                self._sample(logits, answering)
            self.meters.steps += 1
            self.meters.forward_seconds += forwarded - began
            self.meters.sample_seconds += time.monotonic() - forwarded
        self.meters.busy_seconds += time.monotonic() - began

    def abort(self, wanted: Callable[[Request], bool]) -> None:
        """Ends at the next step, with what was sampled so far."""
        for request in [*self.waiting, *self.running]:
            if wanted(request):
                request.aborted = True

    def fail_all(self, error: Exception) -> None:
        for request in [*self.waiting, *self.running]:
            request.done(error)
        self.waiting.clear()
        self.running.clear()

    def _drop_aborted(self) -> None:
        for request in [r for r in self.running if r.aborted]:
            self._finish(request, "abort")
        for request in [r for r in self.waiting if r.aborted]:
            self.waiting.remove(request)
            request.done(Completion(token_ids=[], logprobs=[], finish="abort", weight_version=self.version))

    def _admit(self) -> None:
        for _ in range(len(self.waiting)):
            request = self.waiting.popleft()
            seat = self.seats.find(request.prompt, request.conversation, self._epoch)
            if seat is None:
                self.waiting.append(request)
                continue
            self._seat(request, seat)

    def _seat(self, request: Request, seat: Seat) -> None:
        self.seats.take(seat, request.prompt, request.conversation, self._epoch)
        slot = request.slot = seat.slot
        if seat.source is not None and seat.shared > seat.kept:
            self.forward.copy_prefix(seat.source.index, slot.index, seat.shared)
        else:
            slot.computed = self.forward.truncate(slot.index, seat.kept)
        request.computed = request.reused = slot.computed
        request.version = self.version
        self.running.append(request)
        self.meters.requests += 1
        self.meters.reused_tokens += request.reused
        self.meters.prompt_tokens += len(request.prompt)

    def _batch(self) -> tuple[Batch, list[Request]]:
        by_slot, segments, budget = {}, [], CHUNK
        for request in self.running:
            assert request.slot is not None
            tokens = request.pending(max(budget, 1))
            budget -= len(tokens) if len(tokens) > 1 else 0
            if budget < 0 or not tokens:
                continue
            end = request.computed + len(tokens)
            segments.append(Segment(request.slot.index, request.computed, tokens, end >= len(request.prompt)))
            by_slot[request.slot.index] = request
            request.computed = request.slot.computed = end
        batch = Batch(segments)
        return batch, [by_slot[s.slot] for s in batch.answering]

    def _sample(self, logits: Tensor, answering: list[Request]) -> None:
        ids, logprobs = sample(
            logits,
            [r.sampling for r in answering],
            [r.random.random() for r in answering],
        )
        self.meters.sampled_tokens += len(ids)
        for request, token, logprob in zip(answering, ids, logprobs, strict=True):
            request.token_ids.append(token)
            request.logprobs.append(logprob)
            if request.on_token is not None:
                request.on_token(token, logprob)
            self._finish_if_done(request, token)

    def _finish_if_done(self, request: Request, token: int) -> None:
        wish = request.sampling
        if token in wish.stop_token_ids or (token in self.stops and not wish.ignore_eos):
            self._finish(request, "stop")
        elif (
            len(request.token_ids) >= wish.max_tokens
            or len(request.prompt) + len(request.token_ids) >= self.max_model_len
        ):
            self._finish(request, "length")

    def _finish(self, request: Request, reason: str) -> None:
        assert request.slot is not None
        self.running.remove(request)
        self.seats.release(request.slot, [*request.prompt, *request.token_ids], request.computed)
        request.done(
            Completion(
                token_ids=request.token_ids,
                logprobs=request.logprobs,
                finish=reason,  # type: ignore[arg-type]
                weight_version=request.version,
                seconds=time.monotonic() - request.started,
                prompt_tokens_computed=len(request.prompt) - request.reused,
            )
        )
