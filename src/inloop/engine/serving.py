"""What the server's routes share: the engine, its chat format, the names it answers to, the requests in flight."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inloop.engine.answers import Choice
from inloop.engine.base import EngineInfo
from inloop.engine.bodies import ApiError
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.render import ChatFormat


class Serving:
    """One policy at a time: the base model's name and the loaded adapter's both mean the present weights."""

    def __init__(
        self, engine: EmbeddedEngine, *, chat_template: str | None = None, form: ChatFormat | None = None
    ) -> None:
        self.engine = engine
        self.first = engine.info()
        self.form = form or ChatFormat(Path(self.first.meta["folder"]), chat_template)
        self.adapter: str | None = None
        self.adapter_path: str | None = None
        self.paused = False
        self.in_flight: dict[str, list[Choice]] = {}

    async def info(self) -> EngineInfo:
        return await asyncio.to_thread(self.engine.info)

    def served(self, model: str) -> str:
        """The name that the answer carries. Raises ApiError (404) for a model that isn't served."""
        names = {self.first.model, Path(self.first.model).name, self.adapter}
        if model and model not in names:
            known = ", ".join(sorted(n for n in {self.first.model, self.adapter} if n))
            raise ApiError(404, f"the model {model!r} is not served; served: {known}", code="model_not_found")
        return model or self.first.model

    @contextmanager
    def flying(self, name: str, choices: list[Choice]) -> Iterator[None]:
        """While it runs, a request can be aborted by its id."""
        self.in_flight[name] = choices
        try:
            yield
        finally:
            del self.in_flight[name]

    async def load(self, name: str, path: str) -> None:
        version = (await self.info()).weight_version + 1
        await asyncio.to_thread(self.engine.load_adapter, Path(path), version)
        self.adapter, self.adapter_path = name, path

    async def unload(self, name: str) -> None:
        if name != self.adapter:
            raise ApiError(404, f"the adapter {name!r} is not loaded", code="model_not_found")
        version = (await self.info()).weight_version + 1
        await asyncio.to_thread(self.engine.unload_adapter, version)
        self.adapter = self.adapter_path = None

    async def pause(self, paused: bool) -> None:
        await asyncio.to_thread(self.engine.pause if paused else self.engine.resume)
        self.paused = paused

    def cards(self) -> list[dict[str, Any]]:
        base = {"object": "model", "owned_by": "inloop", "max_model_len": self.first.max_model_len}
        out = [{"id": self.first.model, "root": self.first.meta["folder"], "parent": None, **base}]
        if self.adapter:
            out.append({"id": self.adapter, "root": self.adapter_path, "parent": self.first.model, **base})
        return out


def new_id(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex}"
