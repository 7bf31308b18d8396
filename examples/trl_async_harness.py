"""TRL's AsyncGRPOTrainer with its own HarnessRolloutWorker on a served taskset, on a CPU with the embedded engine:

    python examples/trl_async_harness.py --url http://127.0.0.1:8000 --token TOKEN --out runs/async [--white-box]

An agent works by itself on each task while its model calls are captured (loop-owning), or TRL samples each turn
(--white-box). With vLLM on a GPU, `HarnessRolloutWorker` and `AsyncGRPOTrainer` are all that is needed of TRL; here the
embedded engine stands in for vLLM."""

from __future__ import annotations

import argparse
from functools import partial

from datasets import Dataset
from openenv.core.harness import MCPHarnessAdapter
from transformers import AutoTokenizer
from trl.chat_template_utils import qwen2_5_chat_template

from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.models import resolve_model
from inloop.engine.server import EngineServer
from inloop.env.harness_sessions import AgentSessionFactory, SessionFactory
from inloop.env.trl_tools import rows
from inloop.train.cpu import cuda_name_not_asked
from inloop.train.trl_async import (
    AsyncGRPOConfig,
    AsyncGRPOTrainer,
    EngineTransfer,
    harness_worker,
    use_torch_attention,
)


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
    parser.add_argument("--white-box", action="store_true")
    args = parser.parse_args()

    model = str(resolve_model(args.model))
    tokenizer = AutoTokenizer.from_pretrained(model)
    if "tools" not in tokenizer.chat_template:
        tokenizer.chat_template = qwen2_5_chat_template
    dataset = Dataset.from_list(rows(args.url, args.split, token=args.token))
    with (
        EmbeddedEngine.start(model, dtype="float32") as engine,
        EngineServer(engine, chat_template=tokenizer.chat_template) as served,
    ):
        train(args, model, tokenizer, dataset, engine, served.url)


def train(args, model, tokenizer, dataset, engine, engine_url) -> None:
    reach = {"url": args.url, "token": args.token}
    agent = partial(
        AgentSessionFactory, **reach, llm_url=engine_url, model=engine.info().model, max_turn_tokens=args.tokens
    )
    harness = {"harness_session_factory": agent}
    if args.white_box:
        harness = {
            "harness_session_factory": partial(SessionFactory, **reach),
            "harness_adapter": MCPHarnessAdapter(),
        }
    worker = harness_worker(
        model_name=engine.info().model,
        dataset=dataset,
        reward_funcs=[],
        processing_class=tokenizer,
        eos_token_ids=[tokenizer.eos_token_id],
        num_generations=args.generations,
        max_inflight_tasks=2 * args.generations,
        vllm_server_url=engine_url,
        max_tokens=args.tokens,
        **harness,
    )
    with cuda_name_not_asked():
        trainer = AsyncGRPOTrainer(
            model=model,
            args=AsyncGRPOConfig(
                output_dir=args.out,
                max_steps=args.steps,
                per_device_train_batch_size=args.generations,
                num_generations=args.generations,
                max_completion_length=args.tokens,
                token_budget=0,
                use_cpu=True,
                bf16=False,
                activation_checkpointing=False,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                vllm_server_base_url=engine_url,
            ),
            train_dataset=dataset,
            processing_class=tokenizer,
            rollout_worker=worker,
            weight_transfer=EngineTransfer(engine),
        )
    use_torch_attention(trainer.model)
    trainer.train()
    for line in trainer.state.log_history:
        if "loss" in line:
            told = {k: round(line[k], 4) for k in ("loss", "reward", "ratio", "kl") if k in line}
            print(f"step {line['step']}: {told}")


if __name__ == "__main__":
    main()
