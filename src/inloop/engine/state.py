"""Which weights an engine serves, kept on disk so that a restarted engine serves the same."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import safe_open

from inloop.engine.core import Core
from inloop.engine.weights import read_weights
from inloop.errors import InloopError
from inloop.files import write_json


class State:
    """`files` are loaded in order; then `adapter`, if any, is merged."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.json"
        self.files: list[Path] = []
        self.adapter: str | None = None
        self.version = 0

    @classmethod
    def read(cls, folder: Path) -> State:
        state = cls(folder)
        if state.path.is_file():
            kept = json.loads(state.path.read_text())
            state.files = [Path(f) for f in kept["files"]]
            state.adapter, state.version = kept["adapter"], kept["version"]
        return state

    def restore(self, core: Core) -> None:
        for file in self.files:
            core.swap(read_weights(file), self.version)
        if self.adapter:
            core.adapt(Path(self.adapter), self.version)

    def load(self, core: Core, file: Path, version: int) -> None:
        """Takes the file over: it is removed once a later one replaces all of its tensors."""
        core.swap(read_weights(file), version)
        fresh = _names(file)
        covered = [old for old in self.files if _names(old) <= fresh]
        self.files = [old for old in self.files if old not in covered] + [file]
        self.adapter, self.version = None, version
        self._write()
        for old in covered:
            old.unlink(missing_ok=True)

    def adapt(self, core: Core, folder: str | None, version: int) -> None:
        """None takes the adapter out: the base weights again."""
        if folder is None:
            core.unadapt(version)
        else:
            core.adapt(Path(folder), version)
        self.adapter, self.version = folder, version
        self._write()

    def _write(self) -> None:
        files = [str(f) for f in self.files]
        write_json(self.path, {"files": files, "adapter": self.adapter, "version": self.version})


def _names(file: Path) -> set[str]:
    try:
        with safe_open(file, "pt") as tensors:
            return set(tensors.keys())
    except OSError as error:
        raise InloopError(f"{file}: {error}", fix="send the weights again") from error
