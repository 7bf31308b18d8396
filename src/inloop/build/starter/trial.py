"""Runs a function of the library, whole or broken, on its cases: in this process, and never for ever."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from inloop.build.starter.library import Arguments

STEPS = 5000
"""Lines that one call may execute; the functions need well under a tenth of them."""
FILE = "<starter>"


class Stuck(BaseException):
    """The call went over its steps. No `except Exception` of the function catches it."""


@dataclass(frozen=True)
class Outcome:
    value: Any = None
    error: str = ""
    """Class of the exception; 'Stuck' when it went over its steps."""
    message: str = ""
    line: int = 0
    """1-based line that raised."""

    def agrees(self, expected: Any) -> bool:
        """As the tests compare: `is` for True, False and None, else `==`."""
        if self.error or expected is None or isinstance(expected, bool):
            return not self.error and self.value is expected
        return not isinstance(self.value, bool) and bool(self.value == expected)


def load(source: str, name: str) -> Callable[..., Any]:
    """Run a module and give its function. Raises what the module raises, SyntaxError too."""
    namespace: dict[str, Any] = {"__name__": "starter"}
    exec(compile(source, FILE, "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def attempt(function: Callable[..., Any], arguments: Arguments) -> Outcome:
    """Call with copies, so that a function that changes its arguments harms nobody."""
    given = copy.deepcopy(arguments)
    before = sys.gettrace()
    sys.settrace(_counter())
    try:
        value = function(*given)
    except Stuck:
        return Outcome(error="Stuck")
    except Exception as error:
        return Outcome(error=type(error).__name__, message=str(error), line=_line(error))
    finally:
        sys.settrace(before)
    return Outcome(value=value)


def attempt_all(source: str, name: str, cases: Sequence[Arguments]) -> list[Outcome]:
    """One outcome a case; a module that can't even be loaded fails them all; after a stuck case the rest are too."""
    try:
        function = load(source, name)
    except Exception as error:
        return [Outcome(error=type(error).__name__, message=str(error))] * len(cases)
    out: list[Outcome] = []
    for arguments in cases:
        stuck = bool(out) and out[-1].error == "Stuck"
        out.append(out[-1] if stuck else attempt(function, arguments))
    return out


def _counter() -> Callable[[FrameType, str, Any], Any]:
    left = STEPS

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != FILE:
            return None
        left -= 1
        if left < 0:
            raise Stuck
        return trace

    return trace


def _line(error: Exception) -> int:
    line, at = 0, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == FILE:
            line = at.tb_lineno
        at = at.tb_next
    return line
