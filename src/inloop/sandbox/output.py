"""Output capped at the source: head and tail are kept, the middle is counted, nothing else is held in memory."""

from __future__ import annotations

STOP_FACTOR = 1024
"""A command that has written this many times what is kept is stopped: its output has no end."""


class Clip:
    """Keeps the first and the last half of `keep` bytes."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.keep // 2 - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 4 * self.keep:
            self._trim()

    def _trim(self) -> None:
        spare = len(self.tail) - (self.keep - self.keep // 2)
        if spare > 0:
            del self.tail[:spare]

    @property
    def clipped(self) -> bool:
        return self.total > self.keep

    def text(self) -> str:
        """UTF-8, what is none of it replaced; a note stands where bytes were cut."""
        self._trim()
        if not self.clipped:
            return (self.head + self.tail).decode("utf-8", "replace")
        cut = self.total - len(self.head) - len(self.tail)
        head, tail = self.head.decode("utf-8", "replace"), self.tail.decode("utf-8", "replace")
        return f"{head}\n[... {cut} bytes cut ...]\n{tail}"
