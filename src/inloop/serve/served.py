"""The checkpoint that is being served, and how a newer one takes its place."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

from inloop.engine.bodies import ApiError
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.serving import Serving
from inloop.errors import InloopError
from inloop.serve.form import TrainedFormat
from inloop.train.origin import Origin, origin

log = logging.getLogger(__name__)


class ServedCheckpoint(Serving):
    """One checkpoint at a time under one name; a swap changes the weights and never the form."""

    def __init__(self, engine: EmbeddedEngine, start: Origin, name: str) -> None:
        form = TrainedFormat(start.tokenizer, start.harness, context=engine.info().max_model_len)
        super().__init__(engine, form=form)
        self.name, self.origin = name, start
        self.swaps = self.failed_swaps = 0
        self._pristine = True
        """The engine holds the base weights, so that an adapter may be put on them."""
        self._swapping = threading.Lock()

    def served(self, model: str) -> str:
        if model and model not in (self.name, Path(self.first.model).name):
            raise ApiError(404, f"the model {model!r} is not served; served: {self.name}", code="model_not_found")
        return self.name

    def cards(self) -> list[dict[str, Any]]:
        about = self.origin.about
        told = {"step": about.step, "run": about.run, "dialect": self.origin.harness.dialect, "base": about.base_model}
        card = {"id": self.name, "object": "model", "created": 0, "owned_by": "inloop"}
        return [{**card, "max_model_len": self.first.max_model_len, "root": str(self.origin.tokenizer), "inloop": told}]

    async def load(self, name: str, path: str) -> None:
        """vLLM's route for adapters is the same swap, with the same checks; the served name stays."""
        await asyncio.to_thread(self.swap, Path(path))

    async def unload(self, name: str) -> None:
        raise ApiError(400, "a served checkpoint is swapped for another one, not unloaded")

    def swap(self, folder: Path) -> int:
        """Serve `folder` from now on; running requests go on. Returns the new weight version.

        Raises InloopError, and nothing has changed, when it does not belong in this one's place."""
        with self._swapping:
            try:
                new = origin(str(folder), other_harness=True)
                self._check(new, folder)
                version = self.engine.info().weight_version + 1
                self._load(new, version)
            except BaseException:
                self.failed_swaps += 1
                raise
            self.origin, self.swaps = new, self.swaps + 1
            return version

    def _check(self, new: Origin, folder: Path) -> None:
        old = self.origin
        pairs = {
            "tokenizer": (old.about.tokenizer, new.about.tokenizer),
            "chat template": (old.about.template, new.about.template),
            "harness": (old.harness.hash(), new.harness.hash()),
        }
        if new.adapter is not None:
            pairs["base model"] = (old.about.base, new.about.base)
        wrong = [f"{what} {theirs} instead of {ours}" for what, (ours, theirs) in pairs.items() if ours != theirs]
        if not new.is_checkpoint:
            wrong = ["it is no checkpoint"]
        if new.adapter is not None and not self._pristine:
            wrong.append("it is an adapter, and whole weights were loaded over its base")
        if wrong:
            raise InloopError(f"{folder} can't take the place of {self.name}: {'; '.join(wrong)}", fix="serve it anew")

    def _load(self, new: Origin, version: int) -> None:
        from safetensors.torch import load_file

        if new.adapter is not None:
            self.engine.load_adapter(new.adapter, version)
            return
        files = sorted(new.base.glob("*.safetensors"))
        self.engine.load_weights([pair for file in files for pair in load_file(file).items()], version)
        self._pristine = False


class Watch:
    """Looks at a checkpoint folder (or a folder of them) and swaps in what is newer; a bad one is told and left."""

    def __init__(self, serving: ServedCheckpoint, folder: Path, *, seconds: float = 2.0) -> None:
        self.serving, self.folder, self._seconds = serving, folder, seconds
        self._seen = self._newest()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)

    def _newest(self) -> tuple[float, int, Path] | None:
        """By time of writing; a checkpoint is renamed into place, so that a new one is a new file."""
        found = []
        for file in (self.folder / "inloop.json", *self.folder.glob("*/inloop.json")):
            try:
                info = file.stat()
            except OSError:
                continue
            if not file.parent.name.startswith("."):  # one that is still being written
                found.append((info.st_mtime, info.st_ino, file.parent))
        return max(found, default=None)

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            newest = self._newest()
            if newest is None or newest == self._seen:
                continue
            self._seen = newest
            try:
                version = self.serving.swap(newest[2])
                log.warning("serving %s as weights %s", newest[2], version)
            except InloopError as error:
                log.warning("not swapped: %s", error)
            except OSError as error:  # it was replaced while it was read: the next look finds what replaced it
                log.warning("not swapped: %s: %s", newest[2], error)
                self._seen = None
