"""Where a record stands, and what is noted about it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop.files import write_atomic
from inloop.trace.skipped import Skipped
from inloop.types import Image


class Bad(ValueError):
    """A record that can't be used; its text is the reason that is counted."""


SHAPES = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, OverflowError)
"""What reading key by key raises when a foreign value has a type that its format never gives it."""


def why(error: Exception) -> str:
    """The reason that is counted."""
    return str(error) if isinstance(error, Bad) else f"unexpected shape: {type(error).__name__}: {str(error)[:80]}"


@dataclass(frozen=True, slots=True)
class Place:
    file: str
    line: int
    """1-based line of a JSONL file, row of a table; 0 is the whole file."""
    skipped: list[Skipped] = field(default_factory=list)
    images: Path | None = None
    """Folder that images are written to, named by their hash; None keeps the hash alone."""

    def at(self, line: int) -> Place:
        return Place(self.file, line, self.skipped, self.images)

    def skip(self, reason: str, kind: str = "record") -> None:
        self.skipped.append(Skipped(file=self.file, line=self.line, reason=reason, kind=kind))

    def block(self, what: str) -> None:
        """A part of a message that the forest has no place for."""
        self.skip(what, kind="block")

    def image(self, data: str, media_type: str) -> Image:
        """`data` is base64 or an address; equal images have one hash."""
        if data.startswith("sha256:"):  # our own exports name the image
            return Image(sha256=data[7:], media_type=media_type)
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raw = data.encode()
        sha = hashlib.sha256(raw).hexdigest()
        if self.images is not None:
            target = self.images / f"{sha}.{_extension(media_type)}"
            if not target.exists():
                write_atomic(target, raw)
        return Image(sha256=sha, media_type=media_type)


def _extension(media_type: str) -> str:
    kind = media_type.rpartition("/")[2].lower()
    return kind if kind.isalnum() and len(kind) < 6 else "bin"


def image_of(block: dict[str, Any], place: Place) -> Image:
    """The image block of any dialect: Anthropic `source`, OpenAI `image_url`, ATIF `source.path`, Pi `data`."""
    source = block.get("source") or block.get("image_url") or block.get("image") or block
    if isinstance(source, str):
        source = {"url": source}
    media = str(source.get("media_type") or source.get("mimeType") or block.get("mimeType") or "image/unknown")
    data = str(source.get("data") or source.get("url") or source.get("path") or "")
    if data.startswith("data:"):
        head, _, data = data.partition(",")
        media = head[5:].split(";")[0] or media
    return place.image(data, media)
