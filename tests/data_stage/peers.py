"""Tokenizers with the special tokens and the chat templates of well-known models, made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trl

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
QWEN_PLAIN = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
LLAMA = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]


def tokenizer(template: str, special: list[str], plain: list[str], eos: str, bos: str | None = None) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(["def add(a, b):\n    return a + b\n", "user assistant tool arguments name"], trainer)
    raw.add_tokens([AddedToken(t, normalized=False, special=False) for t in plain])
    made = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=eos, pad_token=special[0], bos_token=bos)
    made.chat_template = (TEMPLATES / f"{template}.jinja").read_text(encoding="utf-8")
    return made


def qwen3() -> Any:
    return tokenizer("qwen3", QWEN, QWEN_PLAIN, "<|im_end|>")


def llama3() -> Any:
    return tokenizer("llama3", LLAMA, [], "<|eot_id|>", "<|begin_of_text|>")
