"""One checkpoint under several settings: what each guide and sensor is worth, how far a gain carries."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inloop.errors import ConfigError
from inloop.evaluate.compare import Pair, compare_pair
from inloop.evaluate.results import Results
from inloop.evaluate.run import EvalSettings, evaluate, own_harness
from inloop.harness.config import HarnessConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    name: str
    """'sensors=syntax', or 'as trained' for the harness of the checkpoint."""
    results: Results
    against: Pair | None
    """Compared with the first cell."""


def parse_vary(texts: Sequence[str]) -> list[list[tuple[str, Any]]]:
    """`harness.sensors=[];["syntax"]` -> one axis of (field, value); values are JSON, ';' stands between them."""
    axes = []
    for text in texts:
        key, eq, values = text.partition("=")
        name = key.strip().removeprefix("harness.")
        if not eq or name not in HarnessConfig.__dataclass_fields__:
            known = ", ".join(HarnessConfig.__dataclass_fields__)
            raise ConfigError(f"--vary {text}: not of the form harness.FIELD=VALUE;VALUE", fix=f"fields: {known}")
        axes.append([(name, _value(v)) for v in values.split(";")])
    return axes


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def run_matrix(settings: EvalSettings, tasks: Path, out: Path, vary: Sequence[str]) -> list[Cell]:
    """Every combination of the axes, each in a folder of its own, so that a stopped matrix goes on."""
    base = own_harness(settings)
    cells: list[Cell] = []
    for combination in itertools.product(*parse_vary(vary)):
        name = ", ".join(f"{k}={_short(v)}" for k, v in combination)
        harness = HarnessConfig.from_dict({**base.to_dict(), **dict(combination)})
        results = evaluate(replace(settings, harness=harness, name=name), tasks, out / _folder(name))
        cells.append(Cell(name=name, results=results, against=_against(cells, results)))
    return cells


def _against(cells: Sequence[Cell], results: Results) -> Pair | None:
    if not cells or not cells[0].results.by_task() or not results.by_task():
        return None
    return compare_pair(cells[0].results, results)


def _short(value: Any) -> str:
    return "+".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _folder(name: str) -> str:
    return re.sub(r"[^\w=+.-]+", "_", name)
