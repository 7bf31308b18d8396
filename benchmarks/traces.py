"""Reading foreign traces: MB/s and peak memory, against agentpile and teich (PyPI) on what they can read.

    python benchmarks/traces.py                  # a corpus of 1 GB, three rounds, the others in venvs of their own
    python benchmarks/traces.py --mb 40 --rounds 1
    python benchmarks/traces.py --ours-only

The corpus is made anew from a seed: half of it Claude Code sessions (a file each), half one JSONL file of chat rows
with tools. Every reader runs in a process of its own, one after the other, round by round; each gets the format by
name where it can take one, and does what it does per file: ours builds the message forest with counts, agentpile its
ATIF runs, teich its training rows. Printed: the best round's MB/s by wall clock and by CPU time, peak memory, and
the turns found."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

CODE = (
    "def {0}(values, limit):\n    total = 0\n    for item in values[:limit]:\n        total += item.{1}\n"
    "    return total / {2}\n"
)
WORDS = [
    "parser", "token", "buffer", "index", "request", "handler", "session", "value", "config", "module", "result",
    "stream", "packet", "cursor", "window", "table",
]  # fmt: skip

OURS = """
import sys
from pathlib import Path
from inloop.trace.read.paths import read
for trajectory in read(Path(sys.argv[1]))[0]:
    turns += int(trajectory.counts["turns"])
"""
AGENTPILE = """
import sys
from pathlib import Path
import agentpile as ap
source = Path(sys.argv[1])
claude = source.is_dir()
for path in sorted(source.rglob("*.jsonl")) if claude else [source]:
    for run in ap.load(path, reader="claude-code-jsonl" if claude else "openai-messages"):
        turns += sum(step.get("source") == "agent" for step in run.steps)
"""
TEICH = """
import sys
from pathlib import Path
from teich import convert_trace_to_training_example, convert_traces_to_training_data
source = Path(sys.argv[1])
if source.is_dir():
    for path in sorted(source.rglob("*.jsonl")):
        turns += sum(m["role"] == "assistant" for m in convert_trace_to_training_example(path).messages)
else:
    for row in convert_traces_to_training_data(source):
        turns += sum(m["role"] == "assistant" for m in row["messages"])
"""
FRAME = """
import resource, time, json
turns = 0
begin, cpu = time.perf_counter(), time.process_time()
{body}
seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(dict(seconds=seconds, cpu=cpu, peak=peak, turns=turns)))
"""
READERS = {"inloop": OURS, "agentpile": AGENTPILE, "teich": TEICH}


def text(rng: random.Random, size: int) -> str:
    """Code-like lines, different each time."""
    out: list[str] = []
    have = 0
    while have < size:
        out.append(CODE.format(rng.choice(WORDS) + str(rng.randrange(1000)), rng.choice(WORDS), rng.randrange(99)))
        have += len(out[-1])
    return "".join(out)


def claude_session(rng: random.Random, number: int, turns: int = 40) -> str:
    """One session file as Claude Code 2.1 writes it: one block a record, results with their copy."""
    session = f"{number:08x}-0000-4000-8000-{rng.randrange(16**12):012x}"
    parent: str | None = None
    rows: list[str] = [json.dumps({"type": "mode", "mode": "default", "sessionId": session})]

    def record(kind: str, message: dict[str, Any], **more: Any) -> None:
        nonlocal parent
        uuid = f"{rng.randrange(16**8):08x}-0000-4000-8000-{len(rows):012d}"
        head = {"parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/work/x",
                "sessionId": session, "version": "2.1.200", "gitBranch": "main", "type": kind, "uuid": uuid,
                "timestamp": f"2026-01-15T09:{len(rows) // 60 % 60:02d}:{len(rows) % 60:02d}.000Z"}  # fmt: skip
        rows.append(json.dumps({**head, "message": message, **more}))
        parent = uuid

    record("user", {"role": "user", "content": text(rng, 600)})
    for turn in range(turns):
        base = {"model": "claude-sonnet-4-5", "id": f"msg_{number}_{turn}", "type": "message", "role": "assistant"}
        usage = {"usage": {"input_tokens": 4, "cache_read_input_tokens": 900, "output_tokens": 60}, "stop_reason": None}
        call = f"toolu_{number}_{turn}"
        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": text(rng, 400), "signature": "c2ln"},
            {"type": "text", "text": text(rng, 200)},
            {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"sed -n 1,{turn}p a.py"}},
        ]  # fmt: skip
        for block in blocks:
            record("assistant", {**base, "content": [block], **usage}, requestId=f"req_{turn}")
        out = text(rng, rng.choice((200, 1500, 4000, 9000)))
        result = [{"tool_use_id": call, "type": "tool_result", "content": out, "is_error": False}]
        record(
            "user",
            {"role": "user", "content": result},
            toolUseResult={"stdout": out, "stderr": "", "interrupted": False},
        )
    done = [{"type": "text", "text": "Done."}]
    record("assistant", {"model": "claude-sonnet-4-5", "id": f"msg_{number}_end", "role": "assistant", "content": done})
    return "\n".join(rows) + "\n"


def chat_row(rng: random.Random, number: int, turns: int = 20) -> str:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": text(rng, 1500)},
        {"role": "user", "content": text(rng, 800)},
    ]
    for turn in range(turns):
        function = {"name": "bash", "arguments": json.dumps({"command": f"sed -n 1,{turn}p a.py"})}
        call = {"id": f"call_{turn}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": text(rng, 300), "tool_calls": [call]})
        messages.append(
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": text(rng, rng.choice((200, 1500, 6000)))}
        )
    messages.append({"role": "assistant", "content": f"Done {number}."})
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "bash", "description": "Run.", "parameters": schema}}
    return json.dumps({"messages": messages, "tools": [tool]}) + "\n"


def corpus(folder: Path, megabytes: float, seed: int = 0) -> dict[str, Path]:
    """Half sessions, half rows. Texts come from a pool, so that a gigabyte takes a minute and not ten."""
    rng = random.Random(seed)
    half = int(megabytes * 5e5)
    sessions, rows = folder / "claude", folder / "chat.jsonl"
    sessions.mkdir(parents=True)
    have = number = 0
    while have < half:
        raw = claude_session(rng, number)
        (sessions / f"{number:08x}.jsonl").write_text(raw)
        have, number = have + len(raw), number + 1
    have = number = 0
    with rows.open("w") as file:
        while have < half:
            raw = chat_row(rng, number)
            file.write(raw)
            have, number = have + len(raw), number + 1
    return {"claude code sessions": sessions, "chat rows": rows}


def python_of(name: str, venvs: Path) -> str:
    """The interpreter of a rival, installed in a venv of its own at the first use."""
    if name == "inloop":
        return sys.executable
    home = venvs / name
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", name], check=True)
    return str(python)


def measure(name: str, source: Path, venvs: Path) -> dict[str, float] | None:
    """None when the reader fails on the file; its last words are printed."""
    code = FRAME.format(body=READERS[name])
    run = subprocess.run([python_of(name, venvs), "-c", code, str(source)], capture_output=True, text=True)
    if run.returncode:
        print(f"  {name} fails: {run.stderr.strip().splitlines()[-1][:200]}")
        return None
    result: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return result


def size(source: Path) -> float:
    return sum(p.stat().st_size for p in (source.rglob("*") if source.is_dir() else [source]) if p.is_file()) / 1e6


def compare(kind: str, source: Path, names: list[str], rounds: int, venvs: Path) -> dict[str, Any]:
    runs: dict[str, list[dict[str, float]]] = {n: [] for n in names}
    for _ in range(rounds):
        for name in list(runs):
            result = measure(name, source, venvs)
            if result is None:
                del runs[name]
            else:
                runs[name].append(result)
    megabytes = size(source)
    print(f"{kind}: {megabytes:.0f} MB")
    rows: dict[str, Any] = {}
    for name, found in runs.items():
        wall, cpu = (megabytes / min(r[k] for r in found) for k in ("seconds", "cpu"))
        peak, turns = max(r["peak"] for r in found), int(found[0]["turns"])
        rows[name] = {"mb_per_s": wall, "mb_per_cpu_s": cpu, "peak_mb": peak, "turns": turns}
        print(f"  {name:<10} {wall:7.1f} MB/s  {cpu:7.1f} MB/CPU-s  peak {peak:6.0f} MB  {turns} turns")
    others = {n: r for n, r in rows.items() if n != "inloop"}
    if others:
        fastest = max(others, key=lambda n: others[n]["mb_per_cpu_s"])
        ratio = {k: rows["inloop"][k] / others[fastest][k] for k in ("mb_per_s", "mb_per_cpu_s")}
        rows["ratio"] = ratio
        print(f"  inloop / {fastest}: {ratio['mb_per_s']:.1f} by wall clock, {ratio['mb_per_cpu_s']:.1f} by CPU time")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--venvs", type=Path, default=Path.home() / ".cache" / "inloop" / "rivals")
    parser.add_argument("--json", type=Path, help="Write the figures there as well.")
    options = parser.parse_args()
    names = ["inloop"] if options.ours_only else list(READERS)
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        small = corpus(Path(folder) / "small", options.mb / 8)
        for kind, source in corpus(Path(folder) / "whole", options.mb).items():
            out[kind] = compare(kind, source, names, options.rounds, options.venvs)
            part = measure("inloop", small[kind], options.venvs)
            if part:
                whole = out[kind]["inloop"]["peak_mb"]
                out[kind]["peak_mb_of_an_eighth"] = part["peak"]
                print(f"  inloop's peak for an eighth of it: {part['peak']:.0f} MB, for the whole: {whole:.0f} MB")
    if options.json:
        options.json.write_text(json.dumps(out, indent=2) + "\n")


if __name__ == "__main__":
    main()
