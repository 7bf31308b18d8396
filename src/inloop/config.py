"""Strict TOML into frozen dataclasses: an unknown key or a wrong type names the file, the line and the right key."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import re
import tomllib
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import tomlkit

from inloop.errors import ConfigError
from inloop.files import write_atomic

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Where a value came from, for the person who has to mend it."""

    name: str
    lines: dict[str, int]

    def at(self, key: str) -> str:
        while key:
            if key in self.lines:
                return f"{self.name}:{self.lines[key]}" if self.lines[key] else f"--set {key}"
            key = key.rpartition(".")[0]
        return self.name


def load(cls: type[T], path: Path | None = None, overrides: Sequence[str] = ()) -> T:
    """Read `path` (or only defaults), apply `a.b=value` overrides in order, build `cls`. Raises ConfigError."""
    data, lines = _read(path) if path else ({}, {})
    source = Source(str(path) if path else "--set", lines)
    for override in overrides:
        key, value = _parse_override(override)
        _set(data, key, value, override)
        for known in [k for k in lines if f"{k}.".startswith(f"{key}.")]:
            del lines[known]
        lines[key] = 0
    return from_dict(cls, data, source)


def from_dict(cls: type[T], data: dict[str, Any], source: Source | None = None) -> T:
    """Build a (nested) dataclass from plain data, as strictly as from a file."""
    built: T = _dataclass(cls, data, "", source or Source("config", {}))
    return built


def to_dict(config: Any) -> dict[str, Any]:
    """Plain TOML-ready data; None is left out, since TOML has no null."""
    out = {}
    for field in dataclasses.fields(config):
        value = _plain(getattr(config, field.name))
        if value is not None:
            out[field.name] = value
    return out


def dump(config: Any) -> str:
    """The resolved config as TOML that `load` reads back to an equal object."""
    return tomlkit.dumps(to_dict(config))


def save(config: Any, path: Path) -> None:
    write_atomic(path, dump(config))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    return value


def _read(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file", fix="give the path of a TOML file; `recipes/` has some") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: can't be read: {error}", fix="it has to be a UTF-8 text file") from None
    try:
        return tomllib.loads(text), _line_numbers(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line (\d+)", str(error))
        place = f"{path}:{where[1]}" if where else str(path)
        raise ConfigError(f"{place}: not TOML: {error}", fix="mend that line; see toml.io") from None


def _line_numbers(text: str) -> dict[str, int]:
    """Dotted key -> 1-based line, by reading headers and keys; good enough to point a person there."""
    lines: dict[str, int] = {}
    table, open_quote = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if open_quote:
            open_quote = "" if line.count(open_quote) % 2 else open_quote
            continue
        if header := re.match(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?", line):
            table = _dotted(header[1])
            lines.setdefault(table, number)
        elif key := re.match(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""", line):
            lines[f"{table}.{_dotted(key[1])}".lstrip(".")] = number
        open_quote = next((q for q in ('"""', "'''") if line.count(q) % 2), "")
    return lines


def _dotted(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _parse_override(text: str) -> tuple[str, Any]:
    key, eq, raw = text.partition("=")
    if not eq or not key.strip():
        raise ConfigError(f"--set {text}: not of the form a.b=value", fix="for example --set train.lr=1e-4")
    try:
        return key.strip(), tomllib.loads(f"v = {raw}")["v"]
    except tomllib.TOMLDecodeError:
        return key.strip(), raw  # a bare word is a string


def _set(data: dict[str, Any], key: str, value: Any, override: str) -> None:
    *parents, last = key.split(".")
    at = data
    for part in parents:
        at = at.setdefault(part, {})
        if not isinstance(at, dict):
            raise ConfigError(f"--set {override}: {part} is a value, not a table", fix="name a key of a table")
    at[last] = value


def _dataclass(cls: type[Any], data: Any, key: str, source: Source) -> Any:
    if not isinstance(data, dict):
        raise _wrong(key, f"a table with the keys of {cls.__name__}", data, source)
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    kw = {}
    for name, value in data.items():
        full = f"{key}.{name}".lstrip(".")
        if name not in fields:
            raise ConfigError(f"{source.at(full)}: unknown key {full!r}", fix=_nearest(name, list(fields), key))
        kw[name] = _convert(hints[name], value, full, source)
    missing = [n for n, f in fields.items() if n not in kw and _required(f)]
    if missing:
        where = source.at(key)
        raise ConfigError(f"{where}: missing {', '.join(f'{key}.{m}'.lstrip('.') for m in missing)}", fix="add it")
    try:
        return cls(**kw)
    except ValueError as error:  # a dataclass checks its own values in __post_init__
        raise ConfigError(f"{source.at(key)}: {error}") from None


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _nearest(name: str, known: list[str], table: str) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    place = f"[{table}]" if table else "the top level"
    return f"did you mean {near[0]!r}?" if near else f"{place} knows: {', '.join(known)}"


def _convert(hint: Any, value: Any, key: str, source: Source) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _union(args, value, key, source)
    if origin is Literal:
        if value not in args:
            raise _wrong(key, "one of " + ", ".join(map(repr, args)), value, source)
        return value
    if origin in (tuple, list, Sequence):
        return _sequence(hint, value, key, source)
    if origin is dict or hint is dict:
        if not isinstance(value, dict):
            raise _wrong(key, "a table", value, source)
        inner = args[1] if args else Any
        return {k: _convert(inner, v, f"{key}.{k}", source) for k, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint, value, key, source)  # type: ignore[arg-type]
    return _scalar(hint, value, key, source)


def _union(args: tuple[Any, ...], value: Any, key: str, source: Source) -> Any:
    options = [a for a in args if a is not type(None)]
    for option in options[:-1]:
        try:
            return _convert(option, value, key, source)
        except ConfigError:
            continue
    return _convert(options[-1], value, key, source)


def _sequence(hint: Any, value: Any, key: str, source: Source) -> Any:
    args = get_args(hint)
    if not isinstance(value, list | tuple):
        raise _wrong(key, "a list", value, source)
    if get_origin(hint) is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        if len(value) != len(args):
            raise _wrong(key, f"a list of {len(args)} values", value, source)
        return tuple(_convert(a, v, key, source) for a, v in zip(args, value, strict=True))
    items = [_convert(args[0], v, key, source) for v in value]
    return tuple(items) if get_origin(hint) is tuple else items


def _scalar(hint: Any, value: Any, key: str, source: Source) -> Any:
    if hint is float and type(value) is int:
        return float(value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        try:
            return hint(value)
        except ValueError:
            raise _wrong(key, "one of " + ", ".join(repr(m.value) for m in hint), value, source) from None
    if hint is Path and isinstance(value, str):
        return Path(value)
    if type(value) is not hint:
        raise _wrong(key, _NAMES.get(hint, str(hint)), value, source)
    return value


_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", Path: "a path"}


def _wrong(key: str, want: str, got: Any, source: Source) -> ConfigError:
    return ConfigError(
        f"{source.at(key)}: {key or 'the file'} has to be {want}, not {got!r}", fix=f"write {want} for {key or 'it'}"
    )
