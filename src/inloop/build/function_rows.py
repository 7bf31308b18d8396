"""Function-level sets (HumanEval, MBPP): one stub in a workspace, its checks as hidden tests called by value."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inloop.build.draft import Drop
from inloop.build.patch import make_patch
from inloop.build.rows import task_id, text
from inloop.tasks.folder import write_task
from inloop.tasks.task import Limits, Provenance, Task, VerifySpec

LIMITS = Limits(wall_seconds=300.0, command_seconds=20.0, cpu_seconds=60.0, memory_mb=256)
MODULE = "solution"


@dataclass(frozen=True)
class Problem:
    id: str
    name: str
    """Of the function."""
    stub: str
    solution: str
    instruction: str
    setup: str
    """Module level code of the tests."""
    checks: Sequence[str]
    """Source of each test's body."""


def humaneval(row: dict[str, Any]) -> Problem:
    """prompt (signature and docstring), canonical_solution (the body), test (`def check(candidate)`), entry_point."""
    prompt, name = text(row, "prompt"), text(row, "entry_point")
    solution = prompt + text(row, "canonical_solution")
    stub = prompt.rstrip() + "\n    raise NotImplementedError\n"
    setup, checks = _of_check(text(row, "test"), name)
    request = f"Implement `{name}` in `{MODULE}.py` as its docstring says. Hidden tests decide.\n"
    return Problem(str(row["task_id"]), name, stub, solution, request, setup, checks)


def _of_check(test: str, name: str) -> tuple[str, list[str]]:
    """(module level code, one body a top-level assertion of `check`, with what stands before it)."""
    tree = _parsed(test, "test")
    check = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "check"), None)
    if check is None or not check.args.args:
        raise Drop("the test has no check(candidate)")
    setup = "\n".join(ast.unparse(n) for n in tree.body if n is not check)
    candidate = check.args.args[0].arg
    before, checks = [f"{candidate} = {name}"] if candidate != name else [], []
    for node in check.body:
        if isinstance(node, ast.Assert):
            if not (isinstance(node.test, ast.Constant) and node.test.value):
                checks.append("\n".join([*before, ast.unparse(node)]))
        else:
            before.append(ast.unparse(node))
    if not checks:
        checks = ["\n".join(before)]
    return setup, checks


def mbpp(row: dict[str, Any]) -> Problem:
    """text or prompt, code (the whole solution), test_list and challenge_test_list (assertions), test_setup_code."""
    code = text(row, "code", "canonical_solution")
    asserts = [str(t) for t in (*row["test_list"], *(row.get("challenge_test_list") or ()))]
    tree = _parsed(code, "solution")
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    called = {n.id for t in asserts for n in ast.walk(_parsed(t, "test")) if isinstance(n, ast.Name)}
    name = next((n for n in reversed(functions) if n in called), "")
    if not name:
        raise Drop("no function of the solution is called by its tests")
    first, rest = asserts[0], asserts[1:] or asserts
    request = f"{text(row, 'text', 'prompt').strip()}\n\nWrite `{name}` in `{MODULE}.py`. For example:\n\n```python\n"
    return Problem(
        id=f"mbpp-{row['task_id']}",
        name=name,
        stub=_stubbed(tree, functions[name]),
        solution=code if code.endswith("\n") else f"{code}\n",
        instruction=f"{request}{first}\n```\n",
        setup="\n".join([str(row.get("test_setup_code") or ""), *map(str, row.get("test_imports") or ())]),
        checks=rest,
    )


def _stubbed(tree: ast.Module, function: ast.FunctionDef) -> str:
    imports = [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    head = f"def {function.name}({ast.unparse(function.args)}):\n    raise NotImplementedError\n"
    return "\n".join([*imports, *([""] if imports else []), head])


def _parsed(code: str, what: str) -> ast.Module:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError):
        raise Drop(f"the {what} does not parse") from None


def write_problem(problem: Problem, out: Path, origin: Provenance) -> Task:
    """A 'split' task: the hidden tests call the function by value."""
    if problem.name not in problem.stub:
        raise Drop("the prompt does not define the function")
    _parsed(problem.stub, "prompt")
    _parsed(problem.solution, "solution")
    body = "".join(
        f"\n\ndef test_{n}():\n" + "".join(f"    {line}\n" for line in check.splitlines())
        for n, check in enumerate(problem.checks, 1)
    )
    test_file = f"test_{MODULE}.py"
    tests = f"from {MODULE} import {problem.name}\n{problem.setup.strip()}\n".rstrip() + f"\n{body}"
    _parsed(tests, "test")
    name = task_id(problem.id.lower())
    files = {f"{MODULE}.py": problem.stub}
    patch = make_patch({k: v.encode() for k, v in files.items()}, {f"{MODULE}.py": problem.solution.encode()})
    task = Task(
        id=name,
        root=out / name,
        instruction=problem.instruction,
        limits=LIMITS,
        verify=VerifySpec(
            mode="split",
            modules=(MODULE,),
            tests=(test_file,),
            expected=tuple(f"{test_file}::test_{n}" for n in range(1, len(problem.checks) + 1)),
            allow=("**/*.py",),
        ),
        test_command=f"python -c 'import {MODULE}'",
        provenance=origin,
    )
    return write_task(task, workspace=files, tests={test_file: tests}, solution={"patch.diff": patch})
