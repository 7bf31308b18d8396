"""`inloop export`: the checkpoint in the forms that other tools load, each with what it belongs to and a model card."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inloop.errors import DataError, InloopError
from inloop.files import write_atomic
from inloop.serve import gguf
from inloop.serve.card import Facts, gather, write_card
from inloop.train.checkpoint import is_checkpoint, merge_checkpoint, read_about

FORMS = ("adapter", "merged", "gguf")
DTYPES = ("float32", "bfloat16", "float16")
SKIPPED = {"README.md", "optimizer.pt", "scheduler.pt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    to: str
    dtype: str = "float32"
    """merged: of the weights. Half precision rounds what the adapter adds; parity says by how much."""
    gguf_type: str = "bf16"
    run: Path | None = None
    """The run folder that the card is written from; None looks around the checkpoint."""
    base: str = ""
    """The base model, where it is not at the place that the checkpoint names."""


def export(checkpoint: Path, out: Path, settings: ExportSettings) -> Path:
    """Write `out` whole or not at all; returns it. Raises InloopError for what can't be exported."""
    if settings.to not in FORMS:
        raise InloopError(f"unknown form {settings.to!r}", fix=f"use one of {', '.join(FORMS)}")
    if not is_checkpoint(checkpoint):
        raise DataError(f"{checkpoint} is not a checkpoint", fix="give RUN/checkpoints/best or /last")
    if out.exists() and any(out.iterdir()):
        raise DataError(f"{out} is not empty", fix="choose another --out")
    facts = gather(checkpoint, settings.run)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as work:
        made = _WRITERS[settings.to](checkpoint, Path(work) / "made", settings)
        _finish(made, facts, settings)
        if out.exists():
            out.rmdir()
        made.rename(out)
    return out


def _finish(made: Path, facts: Facts, settings: ExportSettings) -> None:
    kind = settings.gguf_type if settings.to == "gguf" else settings.dtype if settings.to == "merged" else ""
    write_atomic(made / "README.md", write_card(facts, form=settings.to, kind=kind))
    for file in made.iterdir():
        file.chmod(0o644)


def _adapter(checkpoint: Path, out: Path, settings: ExportSettings) -> Path:
    """As it was saved: merging and taking apart again would wear it."""
    what = read_about(checkpoint)
    if what.kind != "adapter":
        raise InloopError(f"{checkpoint} holds full weights, no adapter", fix="use --to merged")
    out.mkdir()
    for file in sorted(checkpoint.iterdir()):
        if file.is_file() and not file.is_symlink() and file.name not in SKIPPED:
            shutil.copyfile(file, out / file.name)
    config = json.loads((out / "adapter_config.json").read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = what.base_model
    write_atomic(out / "adapter_config.json", json.dumps(config, indent=2) + "\n")
    return out


def _merged(checkpoint: Path, out: Path, settings: ExportSettings) -> Path:
    """Merged in float32 and rounded once."""
    import torch

    if settings.dtype not in DTYPES:
        raise InloopError(f"unknown dtype {settings.dtype!r}", fix=f"use one of {', '.join(DTYPES)}")
    merge_checkpoint(checkpoint, out, settings.base, dtype=torch.float32)
    if settings.dtype != "float32":
        _round(out, settings.dtype)
    return out


def _round(folder: Path, dtype: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    kind = getattr(torch, dtype)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    model.to(kind).save_pretrained(folder)


def _gguf(checkpoint: Path, out: Path, settings: ExportSettings) -> Path:
    with tempfile.TemporaryDirectory(prefix="inloop-export-") as work:
        merged = merge_checkpoint(checkpoint, Path(work) / "merged", settings.base, dtype=_float32())
        out.mkdir()
        gguf.convert(merged, out / f"model-{settings.gguf_type}.gguf", settings.gguf_type)
        for name in (*gguf.COPIED, "generation_config.json"):
            if (merged / name).is_file():
                shutil.copyfile(merged / name, out / name)
    return out


def _float32() -> Any:
    import torch

    return torch.float32


_WRITERS = {"adapter": _adapter, "merged": _merged, "gguf": _gguf}
