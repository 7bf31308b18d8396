"""`inloop serve --engine vllm`: the command that serves this checkpoint, flag by flag, and the process that it is."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop.errors import DataError, InloopError
from inloop.files import write_atomic
from inloop.harness.config import HarnessConfig
from inloop.serve.gguf import gguf_of
from inloop.serve.server import Settings, name_of
from inloop.train.origin import Origin, origin

MODULE = "vllm.entrypoints.openai.api_server"
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM takes as --max-lora-rank."""
PARSERS = {
    "qwen2_5": "hermes",
    "qwen3": "hermes",
    "qwen3_instruct_2507": "hermes",
    "qwen3_vl": "hermes",
    "qwen3_5_nothink": "qwen3_coder",
    "qwen3_5_think": "qwen3_coder",
    "llama3_1": "llama3_json",
    "llama3_2": "llama3_json",
    "glm4moe": "glm45",
    "gptoss": "openai",
    "deepseekv3": "deepseek_v3",
}
"""Chat template, as TRL knows it -> vLLM's --tool-call-parser (vLLM's documentation; not run here)."""
THINKING = {"qwen3": "qwen3", "qwen3_5_think": "qwen3", "glm4moe": "glm45"}
"""The same -> --reasoning-parser, where the checkpoint was trained to think."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    token: str | None = None
    name: str = ""
    url: str = ""


def command(settings: Settings, *, python: str, tool_parser: str = "") -> Plan:
    """What to run. Raises InloopError where vLLM can't serve it as it was trained."""
    if gguf_of(Path(settings.checkpoint)):
        raise InloopError("vLLM is given safetensors here", fix="export with --to merged, or serve the checkpoint")
    if settings.watch:
        raise InloopError("--watch is for the embedded engine", fix="POST /v1/load_lora_adapter to vLLM")
    start = origin(settings.checkpoint)
    name = settings.name or name_of(settings.checkpoint)
    argv = [python, "-m", MODULE, "--model", str(start.base), "--tokenizer", str(start.tokenizer)]
    argv += ["--host", settings.host, "--port", str(settings.port or 8000)]
    argv += ["--max-model-len", str(context(settings, start))]
    argv += ["--dtype", settings.dtype, "--logprobs-mode", "processed_logprobs"]
    argv += _adapter(start, name) or ["--served-model-name", name]
    argv += _dialect(start, tool_parser)
    token = None if settings.open_to_all else settings.token or secrets.token_urlsafe(24)
    env = {"VLLM_NO_USAGE_STATS": "1", **({"VLLM_API_KEY": token} if token else {})}  # argv can be read by anybody
    return Plan(argv=argv, env=env, token=token, name=name, url=f"http://{settings.host}:{settings.port or 8000}")


def context(settings: Settings, start: Origin) -> int:
    """The harness's own limit where it has one: what lies beyond was never trained."""
    from inloop.data.tokens import context_of

    wanted = settings.max_model_len or start.harness.max_context or context_of(start.base)
    if not wanted:
        raise DataError(f"{start.base}: config.json names no context", fix="give --max-model-len")
    return wanted


def _adapter(start: Origin, name: str) -> list[str]:
    if start.adapter is None:
        return []
    config = json.loads((start.adapter / "adapter_config.json").read_text(encoding="utf-8"))
    rank = next((r for r in RANKS if r >= int(config["r"])), None)
    if rank is None:
        raise InloopError(f"an adapter of rank {config['r']} is more than vLLM takes", fix="export with --to merged")
    base = f"{name}-base"
    return [
        "--served-model-name", base, "--enable-lora", "--max-loras", "1", "--max-lora-rank", str(rank),
        "--lora-modules", f"{name}={start.adapter}",
    ]  # fmt: skip


def _dialect(start: Origin, tool_parser: str) -> list[str]:
    """The template that was trained with, and the parser of its calls; text calls are read by the harness."""
    from transformers import AutoTokenizer

    from inloop.harness.dialect import make_dialect

    tokenizer = AutoTokenizer.from_pretrained(start.tokenizer)
    dialect: Any = make_dialect(start.harness, tokenizer)
    out = []
    if dialect.template.source != tokenizer.chat_template:
        out += ["--chat-template", str(_written(dialect.template.source))]
    if start.harness.dialect == "text":
        return out
    family = template_family(tokenizer.chat_template)
    parser = tool_parser or PARSERS.get(family, "")
    if not parser:
        raise InloopError(
            "no vLLM parser is known for this checkpoint's chat template", fix="name one: --tool-parser PARSER"
        )
    out += ["--enable-auto-tool-choice", "--tool-call-parser", parser]
    return out + _thinking(start.harness, family, dialect.template.variables)


def _thinking(harness: HarnessConfig, family: str, variables: dict[str, Any]) -> list[str]:
    out = ["--default-chat-template-kwargs", json.dumps(variables)] if variables else []
    if harness.thinking and family in THINKING:
        out += ["--reasoning-parser", THINKING[family]]
    return out


def template_family(template: str | None) -> str:
    """Which of the templates that TRL knows this one is; '' for another."""
    from trl import chat_template_utils as known

    for name in PARSERS:
        if template is not None and getattr(known, f"{name}_chat_template", None) == template:
            return name
    return ""


def _written(source: str) -> Path:
    """vLLM reads templates from files; named by content, so that a command can be run again."""
    import hashlib

    from inloop.engine.models import cache_folder

    file = cache_folder() / "templates" / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.jinja"
    if not file.is_file():
        write_atomic(file, source)
    return file


def run(plan: Plan) -> int:
    """vLLM in the foreground: Ctrl-C and SIGTERM are handed on, its exit code is ours."""
    try:
        process = subprocess.Popen(plan.argv, env={**os.environ, **plan.env}, start_new_session=True)
    except OSError as error:
        raise InloopError(f"can't run {plan.argv[0]}: {error}", fix="give the python of vLLM's environment") from error
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.terminate())
    return process.wait()
