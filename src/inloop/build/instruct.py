"""What the agent is told: the behaviour that is wrong, from a failing test; neither the line nor the fix."""

from __future__ import annotations

import ast
import random
import re
import textwrap

from inloop.build.suite import TestRun
from inloop.build.testsplit import TestFile, function_of

MESSAGE_LINES = 12
MESSAGE_CHARACTERS = 800
OPENINGS = (
    "Something in this repository is broken. This should hold, and it does not:",
    "A check that passed before fails now:",
    "The following code does not do what it should:",
    "There is a bug in this repository. It shows here:",
    "Please find out why this fails, and mend it:",
)
ENDINGS = (
    "Find the cause in the source and mend it. Leave the tests as they are: further tests decide.",
    "Mend the source, not the tests. Tests that are not in the workspace will check the result.",
    "Change the code so that it behaves correctly again. Hidden tests will judge the whole behaviour.",
    "Repair it without touching the tests; other tests than the visible ones decide whether it is right.",
)


def bug_report(test: TestRun, file: TestFile, rng: random.Random) -> str:
    """Opening, the code that fails, what happens, how the work is judged."""
    parts = [rng.choice(OPENINGS), example(test, file), _outcome(test), rng.choice(ENDINGS)]
    return "\n\n".join(parts) + "\n"


def stub_request(path: str, name: str, test: TestRun, file: TestFile, rng: random.Random) -> str:
    opening = rng.choice(
        (
            f"`{name}` in `{path}` has a signature and a docstring but no body. Implement it.",
            f"Write the body of `{name}` in `{path}`; its signature and its docstring say what it has to do.",
        )
    )
    ending = "Keep the signature. Tests that are not in the workspace decide."
    return "\n\n".join([opening, "For example, this has to work:", example(test, file), ending]) + "\n"


NEW_NAMES = {"ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "TypeError"}
"""How a test fails that uses what does not exist yet: nobody could guess the name."""


def session_request(words: str, test: TestRun, file: TestFile) -> str:
    """The person's own words; where the tests need names that the repository lacks, one use of them beside it."""
    words = re.sub(r"(\b[\w/]+\.py)(:\d+|\", line \d+)", r"\1", words.strip())
    if test.exception not in NEW_NAMES:
        return f"{words}\n"
    shown = example(test, file)
    imports = file.imports(_names(shown))
    if imports and shown.startswith("```python\n"):
        shown = shown.replace("```python\n", "```python\n" + "\n".join(imports) + "\n", 1)
    return f"{words}\n\nAfterwards this has to work:\n\n{shown}\n"


def example(test: TestRun, file: TestFile) -> str:
    """The statement that fails, with the assignments that it needs; the test's name where no line is known."""
    name = "::".join(function_of(test.id).split("::")[1:])
    statement = file.statement(test.line) if test.line else ""
    if not statement:
        return f"what `{name.replace('::', '.')}` of `{file.path}` tests."
    needed = [*_needed(file, name, test.line, statement), statement]
    used = _names("\n".join(needed))
    given = [re.sub(r" at 0x[0-9a-fA-F]{6,}", "", p) for p in test.params if p.split(" = ")[0] in used]
    code = [*given, *needed]
    return f"```python\n# {name.replace('::', '.')}\n" + "\n".join(code) + "\n```"


def _needed(file: TestFile, name: str, line: int, statement: str) -> list[str]:
    """Earlier assignments in the same test to the names that the statement uses; few and short ones only."""
    function = file.functions.get(name)
    if function is None:
        return []
    wanted = _names(statement)
    out: list[str] = []
    for node in reversed(function.body):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.lineno >= line:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        stored = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        text = textwrap.dedent(" " * node.col_offset + file.module.source(node))
        if stored & wanted and text.count("\n") < 8 and len(out) < 4:
            out.append(text)
            wanted = (wanted - stored) | _names(text)
    return out[::-1]


def _names(code: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", code))


def _outcome(test: TestRun) -> str:
    message = clip(test.message)
    if not message:
        return f"It ends with `{test.exception or 'an error'}`."
    if "\n" in message or len(message) > 100:
        return f"It ends with `{test.exception}`:\n\n```\n{message}\n```"
    return f"It ends with `{test.exception}: {message}`."


def clip(message: str) -> str:
    """Few lines; no paths, no suggestion of the right name, no addresses (they differ from run to run)."""
    message = re.sub(r"\s*\. Did you mean: .*?\?", "", message.replace("/workspace/", ""))
    message = re.sub(r"(File )?\"?[\w./-]*\.py\"?(:|, line )\d+", "...", message)
    message = re.sub(r" at 0x[0-9a-fA-F]{6,}", "", message)
    lines = message.strip().replace("```", "'''").splitlines()
    cut = "\n".join(lines[:MESSAGE_LINES])[:MESSAGE_CHARACTERS]
    return cut + ("\n..." if len(lines) > MESSAGE_LINES or len(message) > len(cut) + 200 else "")
