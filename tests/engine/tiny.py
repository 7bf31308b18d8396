"""Small real models: random weights of real architectures, a byte-level tokenizer trained on a few lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LINES = ["def add(a, b):\n    return a + b\n", "the quick brown fox", "print('hello world')", "for i in range(10):"]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SHAPE = {
    "vocab_size": 400,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
}


def tokenizer() -> Any:
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        LINES * 5,
        trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False),
    )
    wrapped = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|im_end|>")
    wrapped.chat_template = CHATML
    return wrapped


def make_model(folder: Path, kind: str = "llama", **changes: Any) -> Path:
    """Random weights of architecture `kind`, large enough to make the distribution far from flat."""
    torch.manual_seed(7)
    config = AutoConfig.for_model(kind, **{**SHAPE, **changes})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.15)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.5)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def rescore(model: Any, prompt: list[int], answer: list[int], temperature: float = 1.0) -> list[float]:
    """What a trainer computes for `answer` after `prompt`: one plain forward, no cache."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1].float()
    logprobs = (logits / temperature).log_softmax(-1)
    return logprobs.gather(1, torch.tensor(answer)[:, None])[:, 0].tolist()
