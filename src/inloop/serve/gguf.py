"""GGUF by llama.cpp's own converter, as PyPI's llama-cpp-python carries it; and back, by transformers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from filelock import FileLock

from inloop.engine.models import cache_folder, pip_download
from inloop.errors import DataError, InloopError

VERSION = "0.3.36"
SDIST = f"llama-cpp-python=={VERSION}"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
PARTS = ("convert_hf_to_gguf.py", "conversion/", "gguf-py/", "LICENSE")
"""What of llama.cpp is unpacked: the converter and its library; nothing is built."""
SCRIPT = "convert_hf_to_gguf.py"
TYPES = ("f32", "f16", "bf16", "q8_0")
COPIED = ("inloop.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json")
"""What lies beside the GGUF: runtimes of transformers' kind read the tokenizer from it exactly."""


def converter() -> Path:
    """The converter's folder, fetched once by pip and checked by its hash."""
    folder = cache_folder() / "tools" / f"llama.cpp-{VERSION}"
    if not (folder / SCRIPT).is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not (folder / SCRIPT).is_file():
                with tempfile.TemporaryDirectory(dir=folder.parent) as work:
                    unpacked_parts = _unpack(_download(Path(work)), Path(work) / "llama.cpp")
                    shutil.rmtree(folder, ignore_errors=True)
                    unpacked_parts.rename(folder)
    return folder


def _download(work: Path) -> Path:
    wanted = work / "wanted.txt"
    wanted.write_text(f"{SDIST} --hash=sha256:{SHA256}\n")
    arguments = ["--no-binary", "llama-cpp-python", "--require-hashes", "-r", str(wanted)]
    what = f"{SDIST}, which carries llama.cpp's converter"
    return pip_download(arguments, work, "*.tar.gz", what, "use --to merged")


def _unpack(sdist: Path, out: Path) -> Path:
    with tarfile.open(sdist) as archive:
        for member in archive:
            name = member.name.partition("/vendor/llama.cpp/")[2]
            if member.isfile() and name.startswith(PARTS):
                member.name = name
                archive.extract(member, out, filter="data")
    return out


def convert(model: Path, out: Path, kind: str) -> Path:
    """A folder of plain weights as one GGUF. Raises InloopError for what the converter does not know."""
    if kind not in TYPES:
        raise InloopError(f"unknown GGUF type {kind!r}", fix=f"use one of {', '.join(TYPES)}")
    script = converter() / SCRIPT
    command = [sys.executable, str(script), str(model), "--outfile", str(out), "--outtype", kind]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    if run.returncode or not out.is_file():
        lines = run.stderr.strip().splitlines() or ["it said nothing"]
        raise InloopError(f"llama.cpp's converter does not take {model}: {lines[-1]}", fix="use --to merged")
    return out


def gguf_of(folder: Path) -> Path | None:
    """The one GGUF of an export. Raises DataError when there are several."""
    found = sorted(folder.glob("*.gguf")) if folder.is_dir() else []
    if len(found) > 1:
        raise DataError(f"{folder} holds {len(found)} GGUF files", fix="keep one export a folder")
    return found[0] if found else None


def unpacked(folder: Path, out: Path) -> Path:
    """The GGUF of an export as plain float32 weights, read by transformers, with the files that lie beside it."""
    import contextlib
    import io

    import torch
    from transformers import AutoModelForCausalLM

    file = gguf_of(folder)
    if file is None:
        raise DataError(f"{folder} holds no GGUF", fix="give what `inloop export --to gguf` wrote")
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that nothing else switches off
        source = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file.name, dtype=torch.float32)
    config = source.config
    if hasattr(config, "quantization_config"):  # save_pretrained refuses what calls itself quantised
        del config.quantization_config
    model = type(source)(config)
    model.load_state_dict(source.state_dict())
    model.save_pretrained(out)
    for name in (*COPIED, "generation_config.json"):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, out / name)
    return out
