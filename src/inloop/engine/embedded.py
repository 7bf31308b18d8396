"""The embedded engine: a transformers model that samples for many conversations at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch

from inloop.engine.base import Completion, EngineInfo, Sampling
from inloop.engine.core import Core
from inloop.engine.models import resolve_model
from inloop.engine.scheduler import Outcome, Request


class EmbeddedEngine:
    """Token form; safe to call from many threads."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._thread = threading.Thread(target=core.run, name="engine", daemon=True)
        self._thread.start()

    @classmethod
    def start(
        cls,
        model: str | Path,
        *,
        dtype: str = "auto",
        threads: int = 1,
        max_model_len: int | None = None,
        slots: int = 32,
    ) -> EmbeddedEngine:
        torch.set_num_threads(threads)
        folder = resolve_model(model)
        return cls(Core(folder, name=str(model), dtype=dtype, max_model_len=max_model_len, slots=slots))

    def info(self) -> EngineInfo:
        return self._core.info()

    def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, conversation: str | None = None
    ) -> Completion:
        future: Future[Completion] = Future()

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, Completion):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)

        self._core.submit(Request(prompt=prompt_ids, sampling=sampling, conversation=conversation, done=done))
        return future.result()

    def forget(self, conversation: str) -> None:
        self._do(lambda: self._core.scheduler.seats.forget(conversation))

    def load_weights(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        given = [(name, tensor.detach()) for name, tensor in weights]
        self._do(lambda: self._core.swap(given, version))

    def load_adapter(self, folder: Path, version: int) -> None:
        self._do(lambda: self._core.adapt(folder, version))

    def close(self) -> None:
        self._core.stop()
        self._thread.join()

    def _do(self, job: Any) -> None:
        future: Future[None] = Future()

        def run() -> None:
            try:
                job()
                future.set_result(None)
            except Exception as error:
                future.set_exception(error)

        self._core.call(run)
        future.result()
