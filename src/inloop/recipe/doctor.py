"""The doctor's whole round: the machine, then one task through the chain."""

from __future__ import annotations

import tempfile
from pathlib import Path

from inloop.recipe.checkup import Finding, examine
from inloop.recipe.doctor_machine import machine_checks


def diagnose(model: str, out: Path, sandbox: str, *, machine: bool = False) -> list[Finding]:
    """The machine, then one task through the whole chain with `model`; what the chain makes is thrown away.

    `out`: where runs would be written. Without the right packages the chain can't begin."""
    found = examine(machine_checks(out))
    if machine:
        return found
    if found[0].state == "failed":
        return [*found, Finding(name="chain", state="skipped", said=f"needs {found[0].name}")]
    from inloop.recipe.doctor_chain import Chain

    with tempfile.TemporaryDirectory(prefix="inloop-doctor-") as work:
        chain = Chain(Path(work), model, sandbox)
        try:
            return [*found, *examine(chain.checks())]
        finally:
            chain.close()
