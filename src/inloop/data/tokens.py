"""Tokenizers: loading one, and telling whether two are the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from inloop.errors import DataError
from inloop.harness.dialect import Dialect
from inloop.types import message


def load_tokenizer(folder: Path) -> Any:
    """Of a model folder. Raises DataError when there is none."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder}: no tokenizer can be loaded: {str(error).splitlines()[0]}", fix="give a model folder"
        ) from None


def fingerprint(tokenizer: Any) -> str:
    """12 hex digits over the vocabulary: ids of one tokenizer mean something else in another."""
    vocabulary = sorted(tokenizer.get_vocab().items())
    return hashlib.sha256(json.dumps(vocabulary).encode("utf-8", "replace")).hexdigest()[:12]


def template_hash(tokenizer: Any) -> str:
    """12 hex digits over the chat template; '' without one."""
    template = tokenizer.chat_template
    return hashlib.sha256(str(template).encode()).hexdigest()[:12] if template else ""


def opening_ids(dialect: Dialect) -> tuple[int, ...]:
    """What a dialect puts right before every turn: the common end of the first prompt and of what extends it."""
    first = dialect.open([message("system", "a"), message("user", "b")])
    later = dialect.extend(True, [message("tool", "c", call_id="read-0")])
    nudge = dialect.extend(True, [message("user", "d")])
    length = 0
    while length < min(map(len, (first, later, nudge))):
        if len({x[-1 - length] for x in (first, later, nudge)}) > 1:
            break
        length += 1
    return tuple(first[len(first) - length :]) if length else ()


def context_of(model: Path) -> int:
    """Tokens that the model was made for; 0 if its config does not say."""
    data = json.loads((model / "config.json").read_text(encoding="utf-8"))
    value = (data.get("text_config") or data).get("max_position_embeddings")
    return value if isinstance(value, int) else 0
