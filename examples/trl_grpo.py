"""TRL's GRPOTrainer on a served taskset: `inloop env serve --tasks TASKS`, then

    python examples/trl_grpo.py --url http://127.0.0.1:8000 --token TOKEN --out runs/trl

Nothing of TRL is changed: the environment is what its `environment_factory=` asks for."""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen2_5_chat_template

from inloop.engine.models import resolve_model
from inloop.env.trl_tools import EnvironmentFactory, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token")
    parser.add_argument("--out", required=True)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--split", default="train")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--generations", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()

    model = str(resolve_model(args.model))
    tokenizer = AutoTokenizer.from_pretrained(model)
    if "tools" not in tokenizer.chat_template:  # a ChatML model that was never shown tools
        tokenizer.chat_template = qwen2_5_chat_template
    trainer = GRPOTrainer(
        model=model,
        args=GRPOConfig(
            output_dir=args.out,
            max_steps=args.steps,
            per_device_train_batch_size=args.generations,
            num_generations=args.generations,
            max_completion_length=args.tokens,
            max_tool_calling_iterations=8,
            use_cpu=True,
            bf16=False,
            activation_checkpointing=False,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
        ),
        train_dataset=Dataset.from_list(rows(args.url, args.split, token=args.token)),
        processing_class=tokenizer,
        environment_factory=EnvironmentFactory(url=args.url, token=args.token),
    )
    trainer.train()
    for line in trainer.state.log_history:
        if "reward" in line:
            print(f"step {line['step']}: reward {line['reward']:.3f}, loss {line['loss']:.4f}")


if __name__ == "__main__":
    main()
