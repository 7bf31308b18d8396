"""A checkpoint folder: an adapter or full weights, the tokenizer, and `inloop.json` that says what they belong to."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from inloop.data.sample import Header
from inloop.data.tokens import fingerprint, template_hash
from inloop.engine.models import resolve_model
from inloop.errors import DataError
from inloop.files import write_json

NAME = "inloop.json"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What `inloop.json` records, and what every later stage holds itself to."""

    base_model: str
    """Name or folder, as it was given."""
    base: str
    """Fingerprint of the base weights."""
    kind: Literal["adapter", "full"] = "adapter"
    tokenizer: str = ""
    dialect: str = ""
    template: str = ""
    """Hash of the chat template."""
    harness: dict[str, Any] = field(default_factory=dict)
    """The resolved harness config and its `hash`."""
    run: str = ""
    step: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    format: int = FORMAT


def about(base_model: str, tokenizer: Any, *, full: bool, header: Header | None = None, run: str = "") -> About:
    """For a new checkpoint of `base_model`; `header` (of the samples) brings dialect and harness."""
    return About(
        base_model=base_model,
        base=base_fingerprint(resolve_model(base_model)),
        kind="full" if full else "adapter",
        tokenizer=fingerprint(tokenizer),
        template=template_hash(tokenizer),
        dialect=header.dialect if header else "",
        harness=header.harness if header else {},
        run=run,
    )


def save_checkpoint(folder: Path, model: Any, tokenizer: Any, what: About) -> Path:
    """Write the whole checkpoint beside `folder` and swap it in: a reader never sees half of one."""
    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    model.save_pretrained(fresh)
    (fresh / "README.md").unlink(missing_ok=True)  # PEFT writes an empty model card
    tokenizer.save_pretrained(fresh)
    write_json(fresh / NAME, asdict(what))
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    return folder


def read_about(folder: Path) -> About:
    """Raises DataError when `folder` is not a checkpoint of ours."""
    file = folder / NAME
    if not file.is_file():
        raise DataError(f"{folder} is not a checkpoint: it has no {NAME}", fix="give RUN/checkpoints/best or /last")
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data.get("format") != FORMAT:
            raise ValueError(f"format {data.get('format')}, this version reads {FORMAT}")
        return About(**data)
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file}: can't be used: {error}", fix="train again, or use the version that wrote it"
        ) from None


def is_checkpoint(folder: Path) -> bool:
    return (folder / NAME).is_file()


def base_folder(folder: Path, base: str = "") -> Path:
    """The base model's folder of a checkpoint. Raises DataError when `base` is not what it was trained from."""
    what = read_about(folder)
    found = resolve_model(base or what.base_model)
    if (actual := base_fingerprint(found)) != what.base:
        raise DataError(
            f"{folder} was trained from {what.base_model} ({what.base}), not from {base or found} ({actual})",
            fix=f"give the base model it was trained from: {what.base_model}",
        )
    return found


def load_checkpoint(folder: Path, base: str = "", **kw: Any) -> tuple[Any, Any, About]:
    """(model, tokenizer, about); an adapter comes on its base. `kw` goes to `load_policy_model`."""
    from inloop.data.tokens import load_tokenizer

    what = read_about(folder)
    if what.kind == "full":
        model = load_policy_model(folder, **kw)
    else:
        model = load_policy_model(base_folder(folder, base), folder, **kw)
    return model, load_tokenizer(folder), what


def load_policy_model(base: Path, adapter: Path | None = None, *, trainable: bool = False, dtype: Any = None) -> Any:
    """A causal LM, with `adapter` on it if there is one. float32 on a CPU, else bfloat16, unless `dtype` says."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    if dtype is None:
        dtype = torch.bfloat16 if torch.cuda.is_available() else torch.float32
    model = AutoModelForCausalLM.from_pretrained(base, dtype=dtype)
    if adapter is None:
        return model
    from peft import PeftModel

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PEFT asks transformers for names that it will drop
            return PeftModel.from_pretrained(model, str(adapter), is_trainable=trainable)
    except (RuntimeError, ValueError) as error:
        raise DataError(
            f"{adapter}: the adapter does not fit {base}: {str(error).splitlines()[0]}",
            fix="give the base model that it was trained from",
        ) from None


def merge_checkpoint(folder: Path, out: Path, base: str = "", *, dtype: Any = None) -> Path:
    """Full weights as safetensors, which plain transformers (and vLLM) loads; the tokenizer comes along."""
    from dataclasses import replace

    model, tokenizer, what = load_checkpoint(folder, base, dtype=dtype)
    if what.kind == "adapter":
        model = model.merge_and_unload()
    return save_checkpoint(out, model, tokenizer, replace(what, kind="full"))


def base_fingerprint(folder: Path) -> str:
    """12 hex digits over names, shapes and the first values (as bfloat16) of some tensors: the same for a copy of
    another precision, another for other weights."""
    import torch
    from safetensors import safe_open

    digest = hashlib.sha256()
    files = sorted(folder.glob("*.safetensors"))
    for file in files:
        with safe_open(file, framework="pt") as tensors:
            names = sorted(tensors.keys())
            for name in names:
                digest.update(f"{name}{tensors.get_slice(name).get_shape()}".encode())
            for name in names[:: max(1, len(names) // 8)]:
                part = tensors.get_slice(name)[:4]
                digest.update(part.flatten()[:512].to(torch.bfloat16).view(torch.int16).numpy().tobytes())
    return digest.hexdigest()[:12]
