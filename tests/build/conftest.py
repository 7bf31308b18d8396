"""What the builder tests share: a small package with tests, and one build of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from inloop.build.builders import build_functions
from inloop.build.run import Report
from inloop.build.source import open_source
from inloop.build.suite import Baseline, baseline

POCKET = Path(__file__).parents[1] / "data" / "build" / "pocket"


@pytest.fixture(scope="session")
def pocket_suite() -> Baseline:
    return baseline(open_source(str(POCKET)), "test")


@pytest.fixture(scope="session")
def mutated(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Four tasks out of the pocket package, audited."""
    out = tmp_path_factory.mktemp("mutated")
    return build_functions("mutate", str(POCKET), out, 4, seed=1)


@pytest.fixture
def pocket(tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(POCKET, tmp_path / "pocket"))


@pytest.fixture
def git(tmp_path: Path) -> Callable[..., str]:
    """Run git in a folder with an identity of its own."""

    def run(folder: Path, *args: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
        done = subprocess.run(["git", *identity, *args], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout

    return run
