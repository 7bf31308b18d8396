"""Parse Python one thread at a time: CPython 3.11 counts the recursion of `ast.parse` for all threads together."""

from __future__ import annotations

import ast
import threading

_LOCK = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """Raises SyntaxError, and ValueError for what can't be source at all."""
    with _LOCK:
        return ast.parse(source)
