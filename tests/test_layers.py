"""The layout is the flow: imports point left, and nothing grows past what can be read at a glance."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "inloop"
STAGES = [
    "errors", "types", "files", "progress", "config", "stats", "trace", "tasks", "sandbox", "verify", "build", "engine",
    "harness", "rollout", "data", "train", "evaluate", "report", "serve", "env", "recipe", "cli",
]  # fmt: skip
GENERATED = {"build/starter"}
"""Task material, not code of ours: library-like modules that agents repair."""


def sources() -> list[Path]:
    return [
        p
        for p in sorted(SRC.rglob("*.py"))
        if not any(str(p.relative_to(SRC)).startswith(g + "/lib") for g in GENERATED)
    ]


def stage(path: Path) -> str:
    first = path.relative_to(SRC).parts[0]
    return first.removesuffix(".py")


def imports(tree: ast.AST) -> list[tuple[int, str]]:
    out = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{a.name}" for a in node.names] if node.module == "inloop" else [node.module]
            out += [(node.lineno, n) for n in names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            out.append((node.lineno, "RELATIVE"))
        elif isinstance(node, ast.Import):
            out += [(node.lineno, a.name) for a in node.names]
    return out


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_left(path: Path) -> None:
    here = stage(path)
    if here == "__init__":
        return
    wrong = []
    for line, name in imports(ast.parse(path.read_text())):
        assert name != "RELATIVE", f"{path}:{line}: relative import; write the whole name"
        if name.startswith("inloop."):
            there = name.split(".")[1]
            if there in STAGES and STAGES.index(there) > STAGES.index(here):
                wrong.append(f"{path}:{line} imports {name}: {there} lies right of {here}")
    assert not wrong, "\n".join(wrong)


def test_no_import_cycles() -> None:
    graph: dict[str, set[str]] = {}
    for path in sources():
        name = ".".join(("inloop", *path.relative_to(SRC).with_suffix("").parts)).removesuffix(".__init__")
        graph[name] = {n for _, n in imports(ast.parse(path.read_text())) if n.startswith("inloop.")}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, "cycle: " + " -> ".join((*trail[trail.index(name) :], name))
        if name in done or name not in graph:
            return
        for other in sorted(graph[name]):
            visit(other, (*trail, name))
        done.add(name)

    for name in sorted(graph):
        visit(name, ())


def test_only_trl_async_touches_experimental() -> None:
    for path in sources():
        if path.relative_to(SRC).as_posix() != "train/trl_async.py":
            assert (
                "import trl.experimental" not in path.read_text() and "from trl.experimental" not in path.read_text()
            ), f"{path}: only train/trl_async.py may import trl.experimental"


def functions() -> list[tuple[str, int]]:
    out = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                out.append((f"{path.relative_to(SRC)}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1))
    return out


def test_functions_fit_in_the_eye() -> None:
    sizes = functions()
    too_long = [f"{name}: {size} lines" for name, size in sizes if size > 80]
    assert not too_long, "\n".join(too_long)
    lengths = sorted(size for _, size in sizes)
    assert statistics.median(lengths) <= 15
    over_40 = [f"{name}: {size}" for name, size in sizes if size > 40]
    assert len(over_40) <= 0.05 * len(lengths), "\n".join(over_40)


def test_files_are_short() -> None:
    long = {str(p.relative_to(SRC)): p.read_text().count("\n") for p in sources()}
    assert not {k: v for k, v in long.items() if v > 400}


def test_import_has_no_effect() -> None:
    heavy = ("torch", "trl", "openenv", "transformers", "pyarrow")
    code = f"import sys, inloop, inloop.cli.main; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]" and not run.stderr
