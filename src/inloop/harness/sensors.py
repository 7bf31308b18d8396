"""Feedback after an action: what each sensor found is added to the observation, and counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote

from inloop.harness.tools import Observation, Toolbox

_SYNTAX = (
    "import ast,sys\n"
    "try: ast.parse(open(sys.argv[1],'rb').read(), sys.argv[1])\n"
    "except SyntaxError as e: print(f'line {e.lineno}: {e.msg}'); sys.exit(1)\n"
    "except ValueError as e: print(e); sys.exit(1)"
)


@dataclass(frozen=True, slots=True)
class Finding:
    sensor: str
    text: str
    """'' when there is nothing to say."""
    kind: str = "tools"
    """Which timing it belongs to."""
    tests_failed: bool = False


def sense(toolbox: Toolbox, edited: str) -> list[Finding]:
    """Run the configured sensors on a file that was just changed. Raises SandboxFault alone.

    They run inside the sandbox, as all that reads the agent's files does; a syntax error spares the rest."""
    found = []
    for name in toolbox.config.sensors:
        found.append(SENSORS[name](toolbox, edited))
        if name == "syntax" and found[-1].text:
            break
    return found


def _syntax(toolbox: Toolbox, edited: str) -> Finding:
    if not edited.endswith(".py"):
        return Finding("syntax", "")
    result = toolbox.run(f"python -c {quote(_SYNTAX)} {quote(edited)}")
    said = result.stdout.strip() or f"could not be checked (exit {result.exit_code})"
    return Finding("syntax", "" if result.ok else f"syntax error: {said[:300]}")


def _ruff(toolbox: Toolbox, edited: str) -> Finding:
    if not edited.endswith(".py"):
        return Finding("ruff", "")
    result = toolbox.run(f"ruff check --no-cache --isolated --quiet --output-format concise {quote(edited)}")
    if result.exit_code == 127:
        return Finding("ruff", "ruff is not there")
    return Finding("ruff", "" if result.ok else f"ruff: {result.stdout.strip()[:500]}")


def _tests(toolbox: Toolbox, edited: str) -> Finding:
    result = toolbox.test()
    return Finding("tests", f"tests: {result.text}", kind="tests", tests_failed=result.tests_failed)


SENSORS: dict[str, Callable[[Toolbox, str], Finding]] = {"syntax": _syntax, "ruff": _ruff, "tests": _tests}


def with_findings(observation: Observation, findings: list[Finding]) -> str:
    return "\n".join([observation.text, *(f.text for f in findings if f.text)])
