"""What can be served: a checkpoint, a model, and every form that `inloop export` writes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inloop.serve.gguf import gguf_of, unpacked
from inloop.train.origin import Origin, origin


@contextmanager
def opened(checkpoint: str) -> Iterator[Origin]:
    """Taken apart for an engine; a GGUF is loaded by transformers and lives as plain weights in a folder that goes."""
    folder = Path(checkpoint)
    if folder.suffix == ".gguf":
        folder = folder.parent
    if not gguf_of(folder):
        yield origin(checkpoint)
        return
    with tempfile.TemporaryDirectory(prefix="inloop-gguf-") as work:
        yield origin(str(unpacked(folder, Path(work) / folder.name)))
