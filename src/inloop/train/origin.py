"""What a run, an evaluation or a server starts from: a checkpoint taken apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from inloop.data.tokens import load_tokenizer
from inloop.engine.models import resolve_model
from inloop.errors import DataError
from inloop.harness.config import HarnessConfig
from inloop.train import checkpoint
from inloop.train.checkpoint import About


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    base: Path
    """Folder of the weights that an adapter is put on."""
    adapter: Path | None
    """None where there is none."""
    tokenizer: Path
    harness: HarnessConfig
    about: About

    @property
    def is_checkpoint(self) -> bool:
        return checkpoint.is_checkpoint(self.tokenizer)


def origin(model: str, harness: HarnessConfig | None = None, *, other_harness: bool = False) -> Origin:
    """`model` is a checkpoint folder of ours, a model folder or a name; `harness` None takes the checkpoint's.

    Raises DataError for a harness that the checkpoint was not trained under, unless `other_harness` allows it."""
    given = Path(model)
    if given.is_dir() and checkpoint.is_checkpoint(given):
        what = checkpoint.read_about(given)
        adapter = given if what.kind == "adapter" else None
        base = checkpoint.base_folder(given) if adapter else given
        chosen = harness or HarnessConfig.from_dict(what.harness)
        if not other_harness:
            _same_harness(chosen, what, given)
        return Origin(base=base, adapter=adapter, tokenizer=given, harness=chosen, about=what)
    base = resolve_model(model)
    chosen = harness or HarnessConfig()
    what = checkpoint.about(model, load_tokenizer(base), full=False)
    what = replace(what, dialect=chosen.dialect, harness=chosen.record())
    return Origin(base=base, adapter=None, tokenizer=base, harness=chosen, about=what)


def _same_harness(harness: HarnessConfig, what: About, given: Path) -> None:
    before = what.harness.get("hash")
    if before and before != harness.hash():
        raise DataError(
            f"{given} was trained under harness {before}, this one is {harness.hash()}",
            fix="leave the harness out to use the checkpoint's, or do SFT under the new one first",
        )
