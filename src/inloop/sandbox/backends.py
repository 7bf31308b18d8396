"""The ladder of backends. One is chosen by name; nothing falls back in silence."""

from __future__ import annotations

from inloop.errors import InloopError
from inloop.sandbox.base import Backend
from inloop.sandbox.bubblewrap import Bubblewrap
from inloop.sandbox.docker import DEFAULT_IMAGE, Docker
from inloop.sandbox.process import UnisolatedProcess

DEFAULT = "bubblewrap"
NAMES = ("bubblewrap", "docker", "unisolated-process")


def open_backend(name: str = DEFAULT, *, image: str = "") -> Backend:
    """`image` is for docker. Raises InloopError for a name that is not exactly one of `NAMES`."""
    if name == "bubblewrap":
        return Bubblewrap()
    if name == "docker":
        return Docker(image or DEFAULT_IMAGE)
    if name == "unisolated-process":
        return UnisolatedProcess()
    raise InloopError(f"there is no sandbox backend {name!r}", fix=f"choose one of {', '.join(NAMES)}")
