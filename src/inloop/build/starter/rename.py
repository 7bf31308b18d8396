"""The same function under other names: every name that it binds may become another one of its family."""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import random
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping

from inloop.build.starter.names import FAMILIES, VERBS

OWN_NAME = 0.2
"""How often the function itself gets another name."""
TAKEN = {*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names, "check"}
"""A function's name is its file's name too: it must not hide a module, nor the checks."""
KEEP = 0.35
"""How often a name stays as it is."""


def choose(source: str, function: str, rng: random.Random) -> dict[str, str]:
    """Old name -> new name for what `source` binds; no two names fall together."""
    taken = _all_names(source) | TAKEN
    out: dict[str, str] = {}
    for name in bound_names(source):
        options = [n for n in FAMILIES.get(name, ()) if n not in taken]
        if name == function:
            options = [n for n in _own_names(name) if n not in taken] if rng.random() < OWN_NAME else []
        elif rng.random() < KEEP:
            options = []
        if options:
            out[name] = rng.choice(options)
            taken.add(out[name])
    return out


def bound_names(source: str) -> list[str]:
    """Functions, parameters and variables, in the order in which they first appear."""
    found: list[tuple[int, int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            found.append((node.lineno, node.col_offset, node.name))
        elif isinstance(node, ast.arg):
            found.append((node.lineno, node.col_offset, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append((node.lineno, node.col_offset, node.id))
    return list(dict.fromkeys(name for _, _, name in sorted(found)))


def _all_names(source: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", source))


def _own_names(name: str) -> list[str]:
    verb, _, rest = name.partition("_")
    if verb in VERBS and rest:
        return [f"{other}_{rest}" for other in VERBS[verb]] + [rest]
    return [f"{verb}_{name}" for verb in ("get", "make", "do")] + [f"my_{name}", f"{name}_of"]


def rename(source: str, names: Mapping[str, str]) -> str:
    """`source` with its names replaced: not attributes, not keywords of calls, not words in strings.

    Works by tokens, so that a source that no longer runs keeps everything else to the byte."""
    lines = source.splitlines(keepends=True)
    for row, start, end, new in sorted(_places(source, names), reverse=True):
        lines[row - 1] = lines[row - 1][:start] + new + lines[row - 1][end:]
    return "".join(lines)


Place = tuple[int, int, int, str]
"""(1-based row, first column, end column, new text)"""


def _places(source: str, names: Mapping[str, str]) -> Iterator[Place]:
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    depth, signature = 0, -1
    for number, token in enumerate(tokens):
        if token.string == "def":
            signature = depth
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == ":" and depth == signature:
                signature = -1
        if token.type == tokenize.NAME and token.string in names:
            follows = tokens[number + 1].string
            is_keyword = depth > 0 and follows == "=" and signature < 0
            if tokens[number - 1].string != "." and not is_keyword:
                yield token.start[0], token.start[1], token.end[1], names[token.string]
        elif token.type == tokenize.STRING and token.string[:1] in "fF" and token.start[0] == token.end[0]:
            new = _in_fields(token.string, names)
            yield token.start[0], token.start[1], token.end[1], new


def _in_fields(text: str, names: Mapping[str, str]) -> str:
    """An f-string that is one token (Python 3.11): names inside its fields, up to a conversion or a format."""

    def word(match: re.Match[str]) -> str:
        return names.get(match[0], match[0])

    def inside(match: re.Match[str]) -> str:
        return re.sub(r"(?<![.\w'\"])[A-Za-z_]\w*", word, match[0])

    return re.sub(r"\{[^{}]*\}", inside, text)
