"""The endpoint under load: streaming clients against the embedded engine with a tiny random model.

    python benchmarks/serve.py --clients 64 --seconds 60

Prints requests by status, time to the first token and of the whole request (p50, p95), events per second, and the
memory of server and engine at the beginning, the middle and the end. Fails on any error but an honest 429 or 503, and
when memory grows by more than 10 % in the second half."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from conftest import build_tiny_model

from inloop.serve.guard import Limits
from inloop.serve.server import Running, Settings, serve

HONEST = (429, 503)
WORDS = ("read", "the", "file", "edit", "it", "test", "then", "submit", "when", "tests", "pass", "def", "return")


@dataclass
class Seen:
    statuses: Counter[str] = field(default_factory=Counter)
    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    tokens: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, status: str, first: float | None = None, whole: float | None = None, tokens: int = 0) -> None:
        with self.lock:
            self.statuses[status] += 1
            self.tokens += tokens
            if first is not None and whole is not None:
                self.first.append(first)
                self.whole.append(whole)


def main() -> None:
    args = arguments()
    with tempfile.TemporaryDirectory() as work:
        model = build_tiny_model(Path(work) / "model")
        limits = Limits(in_flight=args.slots + args.queue)
        settings = Settings(checkpoint=str(model), slots=args.slots, dtype="float32", limits=limits)
        with serve(settings) as server:
            seen, memory = load(server, args)
    told = report(seen, memory, args)
    print(json.dumps(told, indent=2))
    if told["failures"]:
        sys.exit(1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--queue", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=32)
    return parser.parse_args()


def load(server: Running, args: argparse.Namespace) -> tuple[Seen, list[float]]:
    seen, ended = Seen(), threading.Event()
    threads = [threading.Thread(target=one_client, args=(server, args, seen, ended, i)) for i in range(args.clients)]
    for thread in threads:
        thread.start()
    memory = []
    deadline = time.monotonic() + args.seconds
    while time.monotonic() < deadline:
        time.sleep(min(1.0, args.seconds / 20))
        memory.append(resident_mb())
    ended.set()
    for thread in threads:
        thread.join()
    return seen, memory


def one_client(server: Running, args: argparse.Namespace, seen: Seen, ended: threading.Event, number: int) -> None:
    """One conversation after the other, as an agent has them: three turns that grow."""
    chance = random.Random(number)
    headers = {"Authorization": f"Bearer {server.token}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=120, trust_env=False) as http:
        while not ended.is_set():
            messages: list[dict[str, Any]] = []
            for _ in range(3):
                messages.append({"role": "user", "content": " ".join(chance.choices(WORDS, k=30))})
                said = one_request(http, messages, args.tokens, seen)
                if said is None:
                    ended.wait(0.1 + chance.random() * 0.4)  # told to come back
                    break
                messages.append({"role": "assistant", "content": said})


def one_request(http: httpx.Client, messages: list[dict[str, Any]], tokens: int, seen: Seen) -> str | None:
    began, first, said, count = time.monotonic(), None, "", 0
    body = {"messages": messages, "max_tokens": tokens, "stream": True, "ignore_eos": True}
    try:
        with http.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                response.read()
                seen.add(str(response.status_code))
                return None
            finished = False
            for line in response.iter_lines():
                if line == "data: [DONE]":
                    finished = True
                elif line.startswith("data: "):
                    event = json.loads(line[6:])
                    if "error" in event:
                        seen.add(f"error in the stream: {event['error']['message'][:80]}")
                        return None
                    piece = event["choices"][0]["delta"].get("content") or ""
                    first = first or (time.monotonic() if piece else None)
                    said, count = said + piece, count + 1
    except httpx.HTTPError as error:
        seen.add(type(error).__name__)
        return None
    if not finished:
        seen.add("a stream without its end")
        return None
    now = time.monotonic()
    seen.add("200", (first or now) - began, now - began, count)
    return said


def resident_mb() -> float:
    """Of this process (server and clients) and the engine's."""
    own = os.getpid()
    children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
    return sum(_rss(pid) for pid in (str(own), *children))


def _rss(pid: str) -> float:
    try:
        rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(row.split()[1]) / 1024 for row in rows if row.startswith("VmRSS")), 0.0)


def report(seen: Seen, memory: list[float], args: argparse.Namespace) -> dict[str, Any]:
    half = memory[len(memory) // 2]
    bad = {s: n for s, n in seen.statuses.items() if s != "200" and s not in map(str, HONEST)}
    failures = [f"{n} x {s}" for s, n in bad.items()]
    if memory[-1] > 1.1 * half:
        failures.append(f"memory grew from {half:.0f} to {memory[-1]:.0f} MB in the second half")
    if not seen.statuses["200"]:
        failures.append("nothing was answered")
    return {
        "clients": args.clients, "seconds": args.seconds, "statuses": dict(seen.statuses),
        "first_token_seconds": spread(seen.first), "request_seconds": spread(seen.whole),
        "events_per_second": round(seen.tokens / args.seconds, 1),
        "memory_mb": {"begin": round(memory[0]), "half": round(half), "end": round(memory[-1])},
        "failures": failures,
    }  # fmt: skip


def spread(values: list[float]) -> dict[str, float]:
    if len(values) < 2:
        return {}
    cuts = statistics.quantiles(values, n=20)
    return {"p50": round(cuts[9], 3), "p95": round(cuts[18], 3), "max": round(max(values), 3)}


if __name__ == "__main__":
    main()
