"""What a verification costs: ten hidden tests with twins, against a bare cold pytest of the same ten tests.

    python benchmarks/verify.py [--samples 30] [--json]

The rows are sampled in turn, so that they share the machine's load; medians and ratios within the run are what counts.
'quiet' are the samples at whose start and end nothing else was runnable. CPU time is that of every process that took
part: the sandbox, the share of the warm test process, and this one. The cold pytest runs unisolated, with plug-ins off,
in a folder where the work is done; it knows no twins."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from inloop.sandbox.base import Diff
from inloop.sandbox.launch import Launched
from inloop.tasks.folder import write_files, write_task
from inloop.tasks.task import Task, VerifyMode, VerifySpec
from inloop.verify import tester
from inloop.verify.verifier import Verifier, expected_ids

GOAL = 1.5
WORKSPACE = {"shop/__init__.py": "", "shop/cart.py": "def total(prices): return 0\n", "README.md": "shop\n"}
SOLVED = {"shop/cart.py": """\
def total(prices):
    return sum(prices)

def mean(prices):
    if not prices:
        raise ValueError("no prices")
    return total(prices) / len(prices)

def cheapest(prices, n=1):
    return sorted(prices)[:n]

def label(price):
    return f"{price:.2f} EUR"
"""}  # fmt: skip
TESTS = {"test_cart.py": """\
import pytest
from shop.cart import cheapest, label, mean, total

@pytest.mark.parametrize("prices, want", [([], 0), ([3], 3), ([1, 2, 3], 6), ([-1, 1], 0)])
def test_total(prices, want):
    assert total(prices) == want

def test_mean():
    assert mean([2, 4]) == 3.0

def test_mean_of_nothing():
    with pytest.raises(ValueError):
        mean([])

def test_cheapest():
    assert cheapest([3, 1, 2]) == [1]

def test_cheapest_two():
    assert cheapest([3, 1, 2], n=2) == [1, 2]

def test_label():
    assert label(3) == "3.00 EUR"

def test_label_rounds():
    assert label(2.999) == "3.00 EUR"
"""}  # fmt: skip


@dataclass
class Row:
    name: str
    action: Callable[[], object]
    all: list[float] = field(default_factory=list)
    quiet: list[float] = field(default_factory=list)
    """Milliseconds."""
    cpu: list[float] = field(default_factory=list)

    def sample(self) -> None:
        calm, cpu, began = _calm(), _cpu(), time.perf_counter()
        self.action()
        taken = (time.perf_counter() - began) * 1e3
        self.all.append(taken)
        self.cpu.append((_cpu() - cpu) * 1e3)
        if calm and _calm():
            self.quiet.append(taken)


used_inside = 0.0
"""CPU seconds of verifying sandboxes that ended."""


def _count_sandboxes() -> None:
    close = Launched.close

    def counted(self: Launched) -> None:
        global used_inside
        closed = self._closed
        close(self)
        used_inside += 0.0 if closed else self.usage().cpu_seconds

    Launched.close = counted  # type: ignore[method-assign]


def _cpu() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(u.ru_utime + u.ru_stime for u in usages)
    return own + used_inside + tester.shared().job.counters().cpu_seconds


def _calm() -> bool:
    return Path("/proc/loadavg").read_text().split()[3].startswith("1/")


def make(root: Path, mode: VerifyMode, verifier: Verifier) -> Task:
    parts = {"workspace": WORKSPACE, "tests": TESTS, "solution": {f"files/{p}": d for p, d in SOLVED.items()}}
    spec = VerifySpec(mode=mode, modules=("shop",), tests=tuple(TESTS))
    task = write_task(Task(id=mode, root=root / mode, instruction="-", verify=spec), **parts)
    ids = expected_ids(task, verifier)
    assert len(ids) == 10
    task = write_task(replace(task, verify=replace(spec, expected=ids)), **parts)
    verifier.build_twins(task)
    return task


def rows(root: Path) -> list[Row]:
    verifier = Verifier(cache=False)
    diff = Diff(changed={p: d.encode() for p, d in SOLVED.items()})
    write_files(root / "cold", WORKSPACE | SOLVED | {f"tests/{n}": t for n, t in TESTS.items()})

    def cold() -> None:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
        env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": "."}
        subprocess.run(command, cwd=root / "cold", env=env, check=True, capture_output=True)

    def judge(task: Task) -> Callable[[], None]:
        def run() -> None:
            reward = verifier.verify(task, diff)
            assert reward.value == 1.0 and not reward.evidence, reward

        return run

    modes: tuple[VerifyMode, ...] = ("split", "forked")
    return [Row("cold pytest, no sandbox", cold), *(Row(f"verify, {m}", judge(make(root, m, verifier))) for m in modes)]


def report(found: list[Row]) -> list[dict[str, object]]:
    base = statistics.median(found[0].all)
    return [
        {
            "row": row.name,
            "median_ms": round(statistics.median(row.all), 1),
            "p10_ms": round(sorted(row.all)[len(row.all) // 10], 1),
            "quiet_ms": round(statistics.median(row.quiet), 1) if row.quiet else None,
            "quiet_n": len(row.quiet),
            "cpu_ms": round(statistics.median(row.cpu), 1),
            "ratio": round(statistics.median(row.all) / base, 2),
            "cpu_ratio": round(statistics.median(row.cpu) / statistics.median(found[0].cpu), 2),
        }
        for row in found
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = rows(Path(folder))
        _count_sandboxes()
        for row in found:
            row.action()
        for _ in range(arguments.samples):
            for row in found:
                row.sample()
    result = report(found)
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{'':26}{'median ms':>10}{'p10':>8}{'quiet (n)':>12}{'CPU ms':>8}{'x cold':>8}{'x CPU':>7}")
    for r in result:
        quiet = f"{r['quiet_ms']} ({r['quiet_n']})"
        print(
            f"{r['row']:26}{r['median_ms']:>10}{r['p10_ms']:>8}{quiet:>12}{r['cpu_ms']:>8}{r['ratio']:>8}{r['cpu_ratio']:>7}"
        )
    print(f"goal: a verification takes at most {GOAL} times a cold pytest")


if __name__ == "__main__":
    main()
