"""How a person is told: every error that a user can cause or mend is an `InloopError` with its fix."""

from __future__ import annotations


class InloopError(Exception):
    """Something that a person can mend; the command line prints it without a traceback and exits 2."""

    exit_code = 2

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}\n  fix: {self.fix}" if self.fix else self.message


class ConfigError(InloopError):
    """A config file or a `--set` that can't be used."""


class TaskError(InloopError):
    """A task folder or taskset that can't be used."""


class DataError(InloopError):
    """Trajectories, samples or results that can't be used."""


class Fault(InloopError):
    """The infrastructure failed, not the agent: what was being measured is unknown (`None`), never 0."""

    family = "fault"


class SandboxFault(Fault):
    family = "sandbox"


class EngineFault(Fault):
    family = "engine"


class VerifierFault(Fault):
    family = "verifier"
