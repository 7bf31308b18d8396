"""TOML tables to dataclasses and back; every complaint names the file, the line and the nearest right key."""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from inloop.errors import TaskError

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Source:
    """A TOML file being read: its text, for line numbers."""

    path: Path
    text: str

    def at(self, table: str, key: str = "") -> str:
        """'path:line' of a key, or of the table's header."""
        return f"{self.path}:{line_of(self.text, table, key)}"


def parse(path: Path) -> tuple[Source, dict[str, Any]]:
    """Read a TOML file. Raises TaskError with the line that does not parse."""
    try:
        text = path.read_text("utf-8")
        return Source(path, text), tomllib.loads(text)
    except OSError as error:
        raise TaskError(f"{path}: {error.strerror or error}", fix="give the path of a task folder") from None
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: not UTF-8 ({error.reason})", fix="save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        where = f"{path}:{line[1]}" if line else f"{path}:{text.count(chr(10)) + 1}"
        raise TaskError(f"{where}: {error}", fix="mend the TOML on that line") from None


def line_of(text: str, table: str, key: str = "") -> int:
    """1-based line of `key` in `[table]`, or of the table's header; 1 when it is nowhere to be seen."""
    current, header = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line):
            current = re.sub(r"[\s\"']", "", match[1])
            header = number if current == table else header
        elif key and current == table and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return number
    return header


def read(cls: type[T], data: Any, source: Source, table: str) -> T:
    """`cls(**data)` with types checked and made canonical (int -> float, list -> tuple). Raises TaskError."""
    if not isinstance(data, Mapping):
        raise TaskError(f"{source.at(table)}: [{table}] must be a table, not {_kind(data)}")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in data:
        if key not in fields:
            raise unknown_key(key, tuple(fields), source, table)
    required = [n for n, f in fields.items() if f.default is f.default_factory is dataclasses.MISSING]
    if missing := [n for n in required if n not in data]:
        raise TaskError(f"{source.at(table)}: [{table}] lacks {', '.join(missing)}", fix=f"add {missing[0]} = ...")
    return cls(**{k: value(hints[k], v, source, table, k) for k, v in data.items()})


def unknown_key(key: str, known: tuple[str, ...], source: Source, table: str) -> TaskError:
    near = difflib.get_close_matches(key, known, 1)
    return TaskError(
        f"{source.at(table, key)}: [{table}] has no key '{key}'",
        fix=f"did you mean '{near[0]}'?" if near else "known keys: " + ", ".join(sorted(known)),
    )


def value(hint: Any, data: Any, source: Source, table: str, key: str) -> Any:
    """`data` as `hint` wants it. Raises TaskError naming the line."""
    try:
        return _coerce(hint, data)
    except TypeError as error:
        raise TaskError(f"{source.at(table, key)}: {key} must be {error}, not {_kind(data)}") from None


def _coerce(hint: Any, data: Any) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return data
    if origin is Literal:
        if data not in args:
            raise TypeError("one of " + ", ".join(repr(a) for a in args))
        return data
    if origin in (types.UnionType, typing.Union):
        return _coerce(next(a for a in args if a is not type(None)), data)
    if origin is tuple:
        if not isinstance(data, list | tuple):
            raise TypeError("a list")
        return tuple(_coerce(args[0], item) for item in data)
    if origin is dict:
        if not isinstance(data, Mapping):
            raise TypeError("a table")
        return {str(k): _coerce(args[1], v) for k, v in data.items()}
    return _scalar(hint, data)


def _scalar(hint: type, data: Any) -> Any:
    names = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, hint) or (isinstance(data, bool) and hint is not bool):
        raise TypeError(names.get(hint, hint.__name__))
    return data


def _kind(data: Any) -> str:
    names = {str: "a string", bool: "a boolean", int: "a whole number", float: "a number", list: "a list"}
    return names.get(type(data), "a table" if isinstance(data, Mapping) else type(data).__name__)


def plain(item: Any) -> dict[str, Any]:
    """A dataclass as a TOML table: what equals its default, and None, is left out."""
    out = {}
    for field in dataclasses.fields(item):
        current = getattr(item, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if current is None or current == default:
            continue
        out[field.name] = list(current) if isinstance(current, tuple) else current
    return out
