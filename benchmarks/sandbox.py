"""What a sandbox costs: commands, starts and resets, against a bare shell and mini-swe-agent's local environment.

    python benchmarks/sandbox.py [--samples 30] [--json]

All rows of a group are sampled in turn, so that they share the machine's load; medians and ratios within the run are
what counts. 'quiet' are the samples at whose start and end nothing else was runnable. Verification has its own
benchmark, benchmarks/verify.py. mini-swe-agent takes part where it is installed (`pip install mini-swe-agent`)."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop.sandbox.base import Sandbox, SandboxSpec
from inloop.sandbox.bubblewrap import Bubblewrap

COMMANDS = {
    "true": "true",
    "a list with a variable": "x=1; echo $x",
    "ls": "ls",
    "python -I -S -c pass": f"{sys.executable} -I -S -c pass",
}
Action = Callable[[], object]


@dataclass
class Row:
    group: str
    name: str
    action: Action
    before: Action = lambda: None
    """Not measured."""
    most: int = 1000
    """Samples, for what takes seconds."""
    all: list[float] = field(default_factory=list)
    quiet: list[float] = field(default_factory=list)
    """Milliseconds."""

    def sample(self) -> None:
        if len(self.all) >= self.most:
            return
        self.before()
        calm, began = _calm(), time.perf_counter()
        self.action()
        taken = (time.perf_counter() - began) * 1e3
        self.all.append(taken)
        if calm and _calm():
            self.quiet.append(taken)


def _calm() -> bool:
    return Path("/proc/loadavg").read_text().split()[3].startswith("1/")


class BareShell:
    """A kept bash without isolation, driven by the shortest protocol there is."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            ["/bin/bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, bufsize=0
        )

    def run(self, command: str) -> bytes:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{command}\necho .end.\n".encode())
        out = b""
        while not out.endswith(b".end.\n"):
            out += self.process.stdout.read(1 << 16)
        return out

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def mini_swe_agent(folder: Path) -> Callable[[str], object] | None:
    os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
    os.environ.setdefault("MSWEA_GLOBAL_CONFIG_DIR", str(folder / ".mini"))
    try:
        from minisweagent.environments.local import LocalEnvironment
    except ImportError:
        return None
    place = LocalEnvironment(cwd=str(folder))
    return lambda command: place.execute({"command": command})


def tree(files: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"inloop-bench-{files}-"))
    for number in range(files):
        path = folder / f"package{number % 40}" / f"module{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"def function{number}():\n    return {number}\n" * 40)
    return folder


def command_rows(stack: ExitStack, folder: Path) -> list[Row]:
    bare, box = BareShell(folder), Bubblewrap().open(SandboxSpec(workspace=folder))
    stack.callback(bare.close)
    stack.callback(box.close)
    mini = mini_swe_agent(folder)
    rows = []
    for name, command in COMMANDS.items():
        rows.append(Row(name, "bare kept shell", lambda c=command: bare.run(c)))  # type: ignore[misc]
        rows.append(Row(name, "live sandbox", lambda c=command: box.run(c)))  # type: ignore[misc]
        if mini:
            rows.append(Row(name, "mini-swe-agent, local (no isolation)", lambda c=command: mini(c)))  # type: ignore[misc]
    return rows


def start_rows(stack: ExitStack, small: Path, large: Path) -> list[Row]:
    opened: list[Sandbox] = []
    backend = Bubblewrap()

    def open_(folder: Path) -> None:
        opened.append(backend.open(SandboxSpec(workspace=folder)))

    def close() -> None:
        while opened:
            opened.pop().close()

    def dirty(box: Sandbox) -> None:
        box.run("for d in */; do echo changed > $d/new; done; rm -r package1")
        time.sleep(0.01)

    stack.callback(close)
    group = "start and reset"
    rows = [
        Row(group, "bare spawn of /bin/true", lambda: subprocess.run(["/bin/true"])),
        Row(group, "bare spawn of bash -c true", lambda: subprocess.run(["/bin/bash", "-c", "true"])),
        Row(group, "sandbox start, 20 files", lambda: open_(small), before=lambda: (close(), time.sleep(0.02))),
        Row(group, "sandbox start, 3,000 files", lambda: open_(large), before=lambda: (close(), time.sleep(0.02))),
        Row(group, "sandbox close", close, before=lambda: None if opened else open_(small)),
    ]
    for name, folder in (("20", small), ("3,000", large)):
        box = backend.open(SandboxSpec(workspace=folder))
        stack.callback(box.close)
        rows.append(Row(group, f"reset, {name} files", box.reset, before=lambda b=box: dirty(b)))  # type: ignore[misc]
    copy = small.parent / f"{large.name}-copy"
    stack.callback(shutil.rmtree, copy, ignore_errors=True)
    rows.append(
        Row(
            group,
            "copying 3,000 files, for comparison (5 samples)",
            lambda: shutil.copytree(large, copy),
            before=lambda: shutil.rmtree(copy, ignore_errors=True),
            most=5,
        )
    )
    return rows


def memory_mb(box: Any) -> float:
    """Proportional share of memory of all processes of one sandbox, its slot included."""
    total = 0
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and _belongs(path, box._launched.slot.pid):
            try:
                lines = (path / "smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def _belongs(path: Path, slot: int) -> bool:
    pid = int(path.name)
    for _ in range(10):
        if pid == slot:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def told(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    base: dict[str, float] = {}
    for row in rows:
        middle = statistics.median(row.all)
        base.setdefault(row.group, middle)
        quiet = statistics.median(row.quiet) if len(row.quiet) >= 5 else None
        out.append(
            {
                "group": row.group, "row": row.name, "median_ms": round(middle, 2),
                "p10_ms": round(sorted(row.all)[len(row.all) // 10], 2),
                "quiet_ms": quiet and round(quiet, 2), "quiet_samples": len(row.quiet),
                "ratio": round(middle / base[row.group], 2), "more_ms": round(middle - base[row.group], 2),
            }
        )  # fmt: skip
    return out


def as_table(results: list[dict[str, Any]]) -> str:
    lines = ["| | | median ms | p10 | quiet (n) | x first | ms more |", "|---|---|---|---|---|---|---|"]
    for r in results:
        quiet = f"{r['quiet_ms']} ({r['quiet_samples']})" if r["quiet_ms"] is not None else "-"
        numbers = f"{r['median_ms']} | {r['p10_ms']} | {quiet} | {r['ratio']} | {r['more_ms']}"
        lines.append(f"| {r['group']} | {r['row']} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        small, large = tree(20), tree(3000)
        stack.callback(shutil.rmtree, small)
        stack.callback(shutil.rmtree, large)
        results = []
        for rows in (command_rows(stack, small), start_rows(stack, small, large)):
            for number in range(arguments.samples + 2):
                for row in rows:
                    row.sample()
                    if number < 2:  # the first rounds warm up
                        row.all.clear()
                        row.quiet.clear()
            results += told(rows)
        box = Bubblewrap().open(SandboxSpec(workspace=small))
        stack.callback(box.close)
        memory = round(memory_mb(box), 1)
        isolation = box.isolation
    if arguments.json:
        print(json.dumps({"rows": results, "memory_mb": memory, "isolation": isolation.limits}, indent=2))
    else:
        print(as_table(results))
        about = f"limits by {isolation.limits}; load {', '.join(f'{n:.1f}' for n in os.getloadavg())}"
        print(f"\nmemory of an idle sandbox (proportional): {memory} MB; {about}")


if __name__ == "__main__":
    main()
