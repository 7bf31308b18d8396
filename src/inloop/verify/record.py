"""What one run of hidden tests told, message by message; checked, because the sender may be the submission."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["passed", "failed", "skipped", "error", "missing", "timeout"]
STEPS = ("setup", "call", "teardown")
MAX_TESTS = 20_000
MAX_TEXT = 2_000


@dataclass(slots=True)
class Test:
    __test__ = False  # not a pytest class
    steps: list[tuple[str, str, bool]] = field(default_factory=list)
    """(setup, call, teardown or sub; outcome; whether it was expected to fail)."""
    detail: str = ""
    cpu: float = 0.0
    over: bool = False
    """It used up its CPU budget."""
    finished: bool = False
    died: bool = False

    def status(self) -> Status:
        """`passed` needs setup, call and teardown, each once, passed, in order, and nothing else."""
        outcomes = {outcome for _, outcome, _ in self.steps}
        if self.over:
            return "timeout"
        if self.died or not self.finished:
            return "missing"
        if any(expected for _, _, expected in self.steps) or "skipped" in outcomes:
            return "skipped"
        if any(step in ("call", "sub") and outcome == "failed" for step, outcome, _ in self.steps):
            return "failed"
        if "failed" in outcomes:
            return "error"
        main = [step for step, _, _ in self.steps if step != "sub"]
        return "passed" if tuple(main) == STEPS and outcomes == {"passed"} else "missing"


@dataclass(slots=True)
class Run:
    """One half of the tests in one process, or in several after one of them died."""

    collected: list[str] = field(default_factory=list)
    tests: dict[str, Test] = field(default_factory=dict)
    broken: list[tuple[str, str]] = field(default_factory=list)
    """(file, why) of files that could not be imported."""
    crash: str = ""
    forged: int = 0
    """Complete messages on the private channel that the runner did not write."""
    ended: bool = False
    died: bool = False
    """The process ended before it said so."""
    resumed: int = 0
    current: str = ""
    odd: int = 0
    """Messages that made no sense."""

    def take(self, message: Any) -> None:
        """Account for one message; one that makes no sense is counted and left out."""
        try:
            kind, *rest = message
            getattr(self, f"_on_{kind}")(*rest)
        except (TypeError, ValueError, AttributeError):
            self.odd += 1

    def _on_collected(self, ids: list[str]) -> None:
        if not self.resumed and len(ids) <= MAX_TESTS and all(isinstance(i, str) for i in ids):
            self.collected = list(ids)

    def _on_start(self, test_id: str) -> None:
        if str(test_id) in self.tests or len(self.tests) > MAX_TESTS:
            self.odd += 1
            return
        self.current = str(test_id)
        self.tests[self.current] = Test()

    def _on_step(self, test_id: str, step: str, outcome: str, expected: bool, detail: str) -> None:
        test = self.tests[test_id] if test_id == self.current and test_id in self.tests else None
        if test is None or len(test.steps) > 1000:
            self.odd += 1
            return
        test.steps.append((str(step), str(outcome), bool(expected)))
        test.detail = clean(str(detail)) or test.detail

    def _on_finish(self, test_id: str, cpu: float, over: bool) -> None:
        test = self.tests.get(test_id)
        if test is None or test.finished:
            self.odd += 1
            return
        test.finished, test.cpu, test.over, self.current = True, float(cpu), bool(over), ""

    def _on_broken(self, file: str, why: str) -> None:
        self.broken.append((str(file), clean(str(why))))

    def _on_crash(self, why: str) -> None:
        self.crash = clean(str(why))

    def _on_forged(self, count: int) -> None:
        self.forged += int(count)

    def _on_died(self, status: int, over: bool) -> None:
        """The process is gone: the test that was running is to blame, if one was."""
        self.died = True
        if self.current in self.tests:
            test = self.tests[self.current]
            test.died, test.over = True, bool(over)
            test.detail = test.detail or f"the process ended (status {status})"
        elif over:
            self.crash = self.crash or "imports used up the CPU budget"
        self.current = ""

    def _on_end(self) -> None:
        self.ended = True

    def left(self) -> list[str]:
        """Tests that were collected and never started."""
        return [i for i in self.collected if i not in self.tests]


def clean(text: str) -> str:
    """Text of a submission for a person's terminal: no control characters, not endless."""
    kept = "".join(c if c == "\n" or c.isprintable() else "?" for c in text[-MAX_TEXT:])
    return kept.strip()
