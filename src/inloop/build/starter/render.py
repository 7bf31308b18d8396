"""The files of a task: the module, the visible checks, the hidden tests, and what the agent is told."""

from __future__ import annotations

from collections.abc import Sequence

from inloop.build.starter.library import Arguments
from inloop.build.starter.trial import Outcome

CLIP = 60
"""Characters of one value in what an agent reads."""
TESTS = 3
"""Hidden test functions of a task: each costs a verification some milliseconds."""

CHECK = """\
import signal, sys

try:
    import {name} as module
except SyntaxError as error:
    sys.exit(print("SyntaxError: %s\\nline %s: %s" % (error.msg, error.lineno, (error.text or "").strip())) or 1)

CASES = [
{cases}
]


def stop(*_):
    raise TimeoutError("took too long")


def place(error):
    at, line = error.__traceback__, 0
    while at:
        if at.tb_frame.f_code.co_filename == module.__file__:
            line = at.tb_lineno
        at = at.tb_next
    return "\\nline %d: %s" % (line, open(module.__file__).read().splitlines()[line - 1].strip()) if line else ""


def check(call, expected):
    try:
        got = eval(call, vars(module))
    except Exception as error:
        return "FAIL %s: %s: %s%s" % (call, type(error).__name__, error, place(error))
    if got != expected or (got is True or got is False) != (expected is True or expected is False):
        return "FAIL %s -> %.60r, expected %.60r" % (call, got, expected)


signal.signal(signal.SIGVTALRM, stop)
signal.setitimer(signal.ITIMER_VIRTUAL, 1)
for case in CASES:
    problem = check(*case)
    if problem:
        sys.exit(print(problem) or 1)
print("ok", len(CASES), "passed")
"""
"""Starts in milliseconds, says one thing, and says it in few tokens."""


def call_text(name: str, arguments: Arguments) -> str:
    return f"{name}({', '.join(map(repr, arguments))})"


def check_file(name: str, cases: Sequence[Arguments], right: Sequence[Outcome]) -> str:
    lines = [f"    ({call_text(name, c)!r}, {r.value!r})," for c, r in zip(cases, right, strict=True)]
    return CHECK.format(name=name, cases="\n".join(lines))


def hidden_tests(name: str, cases: Sequence[Arguments], right: Sequence[Outcome]) -> tuple[str, list[str]]:
    """The pytest file and the names of its tests, each of which asserts a few cases."""
    asserts = [
        f"    assert {call_text(name, case)} {_equals(outcome.value)}\n"
        for case, outcome in zip(cases, right, strict=True)
    ]
    groups = [asserts[start::TESTS] for start in range(min(TESTS, len(asserts)))]
    names = [f"test_{number}" for number in range(1, len(groups) + 1)]
    parts = [f"\n\ndef {test}():\n{''.join(group)}" for test, group in zip(names, groups, strict=True)]
    return "".join([f"from {name} import {name}\n", *parts]), names


def _equals(value: object) -> str:
    return f"is {value}" if value is None or isinstance(value, bool) else f"== {value!r}"


def instruction(name: str, case: Arguments, right: Outcome, wrong: Outcome) -> str:
    """The wrong behaviour on one visible case; neither the line nor the fix."""
    call, expected = call_text(name, case), _clipped(right.value)
    if wrong.error:
        return f"{call} raises {wrong.error}, it should return {expected}. Fix {name}.py.\n"
    return f"{call} returns {_clipped(wrong.value)}, it should return {expected}. Fix {name}.py.\n"


def _clipped(value: object) -> str:
    text = repr(value)
    return text if len(text) <= CLIP else text[: CLIP - 3] + "..."
