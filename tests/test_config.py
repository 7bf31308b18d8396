from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inloop import config
from inloop.errors import ConfigError


class Kind(StrEnum):
    A = "a"
    B = "b"


@dataclass(frozen=True, kw_only=True)
class Lora:
    rank: int = 16
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Train:
    learning_rate: float = 1e-3
    steps: int | None = None
    mode: Literal["full", "lora"] = "lora"
    lora: Lora = field(default_factory=Lora)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    name: str
    kind: Kind = Kind.A
    out: Path = Path("runs")
    train: Train = field(default_factory=Train)
    sources: dict[str, float] = field(default_factory=dict)
    pair: tuple[int, str] = (1, "x")

    def __post_init__(self) -> None:
        if self.name == "bad":
            raise ValueError("name can't be 'bad'")


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    return path


def test_reads_nested_values_and_defaults(tmp_path: Path) -> None:
    path = write(tmp_path, 'name = "x"\nkind = "b"\n[train]\nlearning_rate = 1\n[train.lora]\nlayers = [1, 2]\n')
    recipe = config.load(Recipe, path)
    assert recipe.train.learning_rate == 1.0 and isinstance(recipe.train.learning_rate, float)
    assert recipe.train.lora == Lora(layers=(1, 2)) and recipe.kind is Kind.B


def test_overrides_win_in_order_and_bare_words_are_text(tmp_path: Path) -> None:
    path = write(tmp_path, 'name = "x"\n')
    recipe = config.load(Recipe, path, ["name=other", "train.lora.rank=8", "train.lora.rank=32", "out=/tmp/r"])
    assert (recipe.name, recipe.train.lora.rank, recipe.out) == ("other", 32, Path("/tmp/r"))


@pytest.mark.parametrize(
    ("text", "place", "fix"),
    [
        (
            'name = "x"\n[train]\nlearning_rat = 1\n',
            "recipe.toml:3: unknown key 'train.learning_rat'",
            "learning_rate",
        ),
        ('name = "x"\n[train]\nsteps = "many"\n', "recipe.toml:3: train.steps has to be a whole number", ""),
        ('name = "x"\ntrain.lora.rank = true\n', "recipe.toml:2: train.lora.rank has to be a whole number", ""),
        ('name = "x"\n[train]\nmode = "qlora"\n', "recipe.toml:3: train.mode has to be one of 'full', 'lora'", ""),
        ('name = "x"\nkind = "c"\n', "recipe.toml:2: kind has to be one of 'a', 'b'", ""),
        ('name = "x"\n\ntrain = 3\n', "recipe.toml:3: train has to be a table", ""),
        ('name = "x"\npair = [1]\n', "recipe.toml:2: pair has to be a list of 2 values", ""),
        ('note = """\nname = 1\n"""\n', "recipe.toml:1: unknown key 'note'", "name"),
        ("name = \n", "recipe.toml:1: not TOML", "mend"),
        ("", "missing name", "add it"),
        ('name = "bad"\n', "name can't be 'bad'", ""),
    ],
)
def test_mistakes_name_the_file_the_line_and_the_fix(tmp_path: Path, text: str, place: str, fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(Recipe, write(tmp_path, text))
    assert place in caught.value.message and fix in (caught.value.fix or "")


def test_mistakes_in_set_name_the_set(tmp_path: Path) -> None:
    path = write(tmp_path, 'name = "x"\n[train]\nsteps = 3\n')
    with pytest.raises(ConfigError, match=r"--set train.steps: train.steps has to be a whole number"):
        config.load(Recipe, path, ["train.steps=few"])
    with pytest.raises(ConfigError, match=r"not of the form a\.b=value"):
        config.load(Recipe, path, ["train.steps"])
    with pytest.raises(ConfigError, match="steps is a value, not a table"):
        config.load(Recipe, path, ["train.steps.x=1"])


def test_missing_and_binary_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        config.load(Recipe, tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\0")
    with pytest.raises(ConfigError, match="can't be read"):
        config.load(Recipe, tmp_path / "b.toml")


@given(
    name=st.text(min_size=1).filter(lambda s: s != "bad" and s.isprintable()),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    layers=st.lists(st.integers(0, 100)),
    sources=st.dictionaries(st.text("abc-. \"'", min_size=1, max_size=5), st.floats(0, 1)),
)
def test_what_is_written_back_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory, name: str, rate: float, layers: list[int], sources: dict[str, float]
) -> None:
    recipe = Recipe(name=name, train=Train(learning_rate=rate, lora=Lora(layers=tuple(layers))), sources=sources)
    path = tmp_path_factory.mktemp("c") / "config.toml"
    config.save(recipe, path)
    assert config.load(Recipe, path) == recipe
