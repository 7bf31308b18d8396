"""What can be served: a checkpoint, a model, and every form that `inloop export` writes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inloop.errors import DataError
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
    from inloop.serve.gguf import unpacked

    with tempfile.TemporaryDirectory(prefix="inloop-gguf-") as work:
        yield origin(str(unpacked(folder, Path(work) / folder.name)))


def gguf_of(folder: Path) -> Path | None:
    """The one GGUF of an export. Raises DataError when there are several."""
    found = sorted(folder.glob("*.gguf")) if folder.is_dir() else []
    if len(found) > 1:
        raise DataError(f"{folder} holds {len(found)} GGUF files", fix="keep one export a folder")
    return found[0] if found else None
