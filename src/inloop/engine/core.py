"""The engine itself, in the process that computes: a model, its slots, and the thread that steps them."""

from __future__ import annotations

import copy
import logging
import queue
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from inloop.engine.base import EngineInfo
from inloop.engine.batch import Batch, Segment
from inloop.engine.cache import KVCache
from inloop.engine.forward import Forward, PackedForward, PlainForward
from inloop.engine.lean import LeanForward
from inloop.engine.scheduler import Request, Scheduler
from inloop.engine.weights import Weights, settings
from inloop.errors import EngineFault, InloopError

log = logging.getLogger(__name__)
PROBE_BYTES = 2 << 30
"""Up to this size a half-precision model is probed in float32."""
PROBE = [3, 1, 4, 1, 5, 9, 2, 6]
LONGEST = 8192
"""Unless a caller asks for more."""


class Core:
    """Loads a model and computes requests on one thread; `submit` and the rest may be called from any."""

    def __init__(self, folder: Path, *, name: str, dtype: str, max_model_len: int | None, slots: int) -> None:
        self.name, self.folder = name, folder
        self.dtype = settings(dtype)
        self.model = load_model(folder, self.dtype)
        self.max_model_len = fit_length(self.model.config, max_model_len)
        self.weights = Weights(self.model)
        self.forward = choose_forward(self.model, slots, self.max_model_len, self.dtype)
        stops = stop_tokens(self.model, folder)
        vocabulary = self.model.get_input_embeddings().num_embeddings
        self.scheduler = Scheduler(
            self.forward, slots=slots, max_model_len=self.max_model_len, vocabulary=vocabulary, stops=stops
        )
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._paused = False

    def info(self) -> EngineInfo:
        return EngineInfo(
            model=self.name,
            max_model_len=self.max_model_len,
            dtype=str(self.dtype).removeprefix("torch."),
            weight_version=self.scheduler.version,
            eos_token_ids=tuple(sorted(self.scheduler.stops)),
            meta={
                "folder": str(self.folder),
                "slots": len(self.scheduler.seats.slots),
                "pass": type(self.forward).__name__,
            },
        )

    def call(self, job: Callable[[], None]) -> None:
        """Have the engine's thread do `job` between two steps."""
        self._inbox.put(job)

    def submit(self, request: Request) -> None:
        self.call(lambda: self.scheduler.add(request))

    def stop(self) -> None:
        self._inbox.put(None)

    def set_paused(self, paused: bool) -> None:
        self._paused = paused

    def swap(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        self.weights.load(weights)
        self._swapped(version)

    def adapt(self, folder: Path, version: int) -> None:
        self.weights.merge(folder)
        self._swapped(version)

    def unadapt(self, version: int) -> None:
        self.weights.unmerge()
        self._swapped(version)

    def _swapped(self, version: int) -> None:
        self.forward.weights_changed()
        self.scheduler.weights_changed(version)

    def run(self) -> None:
        """Until `stop`: jobs first, then a step; sleeps when there is nothing to do."""
        try:
            with torch.inference_mode():
                while self._jobs():
                    if not self._paused and not self.scheduler.idle:
                        self.scheduler.step()
        except BaseException as error:
            self.scheduler.fail_all(EngineFault(f"the engine failed: {error!r}"))
            raise
        self.scheduler.fail_all(EngineFault("the engine was closed"))

    def _jobs(self) -> bool:
        """False when told to stop. Blocks while there is nothing to compute."""
        while True:
            wait = self._paused or self.scheduler.idle
            try:
                job = self._inbox.get(block=wait)
            except queue.Empty:
                return True
            if job is None:
                return False
            job()


def load_model(folder: Path, dtype: torch.dtype) -> Any:
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, use_safetensors=True)
    except (OSError, ValueError, KeyError) as error:
        raise InloopError(
            f"{folder}: transformers can't load it as a causal model: {error}", fix="check the folder's config.json"
        ) from error
    return model.eval().requires_grad_(False)


def fit_length(config: Any, wanted: int | None) -> int:
    most = getattr(config.get_text_config(), "max_position_embeddings", None) or LONGEST
    if wanted is not None and wanted > most:
        raise InloopError(f"max_model_len {wanted} is more than the model's {most}", fix=f"ask for at most {most}")
    return wanted or min(most, LONGEST)


def stop_tokens(model: Any, folder: Path) -> frozenset[int]:
    """The ends of turn that the generation config and the tokenizer name."""
    named = model.generation_config.eos_token_id
    stops = {named} if isinstance(named, int) else set(named or ())
    if (folder / "tokenizer.json").is_file() or (folder / "tokenizer_config.json").is_file():
        stops.add(AutoTokenizer.from_pretrained(folder).eos_token_id)
    return frozenset(stops - {None})


def choose_forward(model: Any, slots: int, length: int, dtype: torch.dtype) -> Forward:
    """The quickest pass that gives this model's own logits on a probe."""
    with torch.inference_mode():
        probe, tolerance = _probe_model(model, dtype)
        wanted = probe(input_ids=torch.tensor([PROBE]), use_cache=False).logits[0, -1].float()
        own = model.config._attn_implementation
        for make in (LeanForward, PackedForward):
            try:
                if _difference(make(probe, KVCache(1, len(PROBE), probe.dtype)), wanted) < tolerance:
                    return make(model, KVCache(slots, length, dtype))
                log.info("%s gives other logits than transformers", make.__name__)
            except InloopError:
                raise
            except Exception as error:  # whatever a foreign architecture makes of it: the plain pass is right
                log.info("%s can't run this model: %r", make.__name__, error)
            probe.set_attn_implementation(own)
    return PlainForward(model)


def _probe_model(model: Any, dtype: torch.dtype) -> tuple[Any, float]:
    """What to try passes on, and how far they may be apart: half precision hides mistakes in its noise."""
    if dtype is torch.float32:
        return model, 1e-3
    if sum(p.nbytes for p in model.parameters()) <= PROBE_BYTES:
        return copy.deepcopy(model).float(), 1e-3
    return model, 0.5


def _difference(forward: Forward, wanted: Tensor) -> float:
    """Mean over the vocabulary; the probe as a prompt and one decoded token, as both kinds of attention count."""
    forward.logits(Batch([Segment(0, 0, PROBE[:-1])]))
    got = forward.logits(Batch([Segment(0, len(PROBE) - 1, PROBE[-1:])]))[0]
    return float((got.log_softmax(-1) - wanted.log_softmax(-1)).abs().mean())
