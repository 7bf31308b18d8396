"""mini-swe-agent, unmodified, from PyPI: its text form, so that any model can drive it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from inloop.engine.models import cache_folder
from inloop.harness.external import Installed
from inloop.sandbox.base import CommandResult
from inloop.types import StopReason

VERSION = "2.4.6"


@dataclass(frozen=True)
class MiniSweAgent:
    name: str = "mini-swe-agent"
    version: str = VERSION
    config: str = "mini_textbased.yaml"
    """'mini.yaml' for models with a native call format."""
    cost_limit: float = 0.0

    def folders(self) -> tuple[Path, ...]:
        return (
            Installed(f"mini-swe-agent=={VERSION}", cache_folder() / "agents" / f"mini-swe-agent-{VERSION}").ensure(),
        )

    def command(self, instruction: str, model: str, url: str, key: str) -> str:
        env = {
            "OPENAI_API_BASE": url,
            "OPENAI_API_KEY": key,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "MSWEA_CONFIGURED": "true",
            "MSWEA_SILENT_STARTUP": "1",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_GLOBAL_CONFIG_DIR": "/tmp/mswea",
            "HOME": "/tmp",
        }
        words = [
            *(f"{name}={value}" for name, value in env.items()),
            f"{self.folders()[0]}/bin/python", "-m", "minisweagent.run.mini",
            "-c", self.config, "-m", f"openai/{Path(model).name}", "--model-class", "litellm_textbased",
            "-l", str(self.cost_limit), "-t", instruction, "-y", "--exit-immediately", "-o", "/tmp/mswea.traj.json",
        ]  # fmt: skip
        return "env " + " ".join(shlex.quote(w) for w in words) + " </dev/null"

    def stop(self, result: CommandResult) -> StopReason:
        return StopReason.SUBMITTED if result.ok else StopReason.AGENT_ERROR
