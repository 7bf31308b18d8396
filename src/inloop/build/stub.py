"""`stub`: a function's body taken out, its signature and docstring kept."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Sequence

from inloop.build.functions import Broken, Covered, key_of
from inloop.build.instruct import stub_request
from inloop.build.pysource import Edit, apply_edits, parses
from inloop.build.suite import TestRun
from inloop.build.testsplit import TestFile

MIN_LINES = 2


def plan(functions: Sequence[Covered], seed: int, dropped: Counter[str]) -> list[Broken]:
    """One candidate a function that has a docstring and at least two lines of body; in an order that the seed gives."""
    out = []
    for covered in functions:
        if ast.get_docstring(covered.function.node) is None:
            dropped["function without a docstring"] += 1
        elif _body_lines(covered) < MIN_LINES:
            dropped[f"function of under {MIN_LINES} lines"] += 1
        elif (data := stubbed(covered)) and parses(data):
            out.append(Broken(key_of(seed, covered.function.unit, data), covered, "stub", data))
    return sorted(out, key=lambda b: b.key)


def _body_lines(covered: Covered) -> int:
    body = covered.function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def stubbed(covered: Covered) -> bytes:
    """The file with `raise NotImplementedError` for the function's body, on lines of its own."""
    module, body = covered.module, covered.function.body
    decorators = getattr(body[0], "decorator_list", ())
    start = module.offset(min([body[0].lineno, *(d.lineno for d in decorators)]), body[0].col_offset)
    _, end = module.span(body[-1])
    return apply_edits(module.data, (Edit(start, end, "raise NotImplementedError"),))


def tell(candidate: Broken, test: TestRun, file: TestFile, rng: random.Random) -> str:
    function = candidate.covered.function
    return stub_request(function.path, function.name, test, file, rng)
