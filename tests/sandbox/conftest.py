"""The attacks are in a module of their own, so that an ordinary user can run them too."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

NAME = "sandbox_checks"


def load() -> ModuleType:
    if NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(NAME, Path(__file__).with_name("checks.py"))
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module
        spec.loader.exec_module(module)
    return sys.modules[NAME]


checks = load()


@pytest.fixture
def box() -> Iterator[object]:
    with checks.opened() as sandbox:
        yield sandbox
