"""Speed of the data stage: chat rows to masked, audited token samples, against teich (PyPI) on the same rows.

    python benchmarks/data.py [--rows 300] [--rounds 3] [--model smollm2-135m]

teich gets a virtual environment of its own, made once. Both sides read the same JSONL of conversations, render them
with the same tokenizer and chat template, mark what trains and audit every row; importing and loading the tokenizer
are left out. Processor time is compared (other load on the machine does not change it); wall time stands beside it.
That both train the same number of tokens is checked, or the difference is printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import asdict
from pathlib import Path

from _episodes import episodes

from inloop.data.audit import audit
from inloop.data.builder import Builder
from inloop.data.drops import Drops
from inloop.data.mask import MaskConfig
from inloop.data.sample import Header, write_samples
from inloop.data.selection import SelectConfig, select
from inloop.data.tokens import fingerprint, load_tokenizer, opening_ids
from inloop.engine.models import cache_folder, resolve_model
from inloop.harness import blocks
from inloop.harness.text import TextDialect
from inloop.trace.read import chat
from inloop.trace.read.place import Place
from inloop.types import Message

TEICH = ("teich==0.3.6", "transformers==5.24.0")

THEIRS = """
import json, sys, time
from types import SimpleNamespace
from datasets import Dataset, disable_progress_bars
from teich import mask_data, prepare_data
from transformers import AutoTokenizer
disable_progress_bars()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[2])
def run(rows):
    data = Dataset.from_list(rows)
    data = prepare_data(data, tokenizer, tokenize=True, verbose=False)
    args = SimpleNamespace(dataset_text_field="text", max_length=None, truncation_mode=None, packing=False)
    holder = SimpleNamespace(train_dataset=data, eval_dataset=None, args=args, processing_class=tokenizer)
    return mask_data(holder, tokenizer=tokenizer, audit=True, verbose=False).train_dataset
rows = [json.loads(line) for line in open(sys.argv[1])]
run(rows[:4])
cpu, wall = time.process_time(), time.monotonic()
rows = [json.loads(line) for line in open(sys.argv[1])]
data = run(rows)
cpu, wall = time.process_time() - cpu, time.monotonic() - wall
tokens = sum(map(len, data["input_ids"]))
trained = sum(x != -100 for labels in data["labels"] for x in labels)
print("RESULT", json.dumps({"cpu": cpu, "wall": wall, "rows": len(data), "tokens": tokens, "trained": trained}))
"""


def chat_rows(count: int) -> list[dict[str, object]]:
    """Conversations in plain text, as a chat API would log them."""
    out = []
    for trajectory in episodes(count):
        said = [{"role": _role(n.message), "content": _content(n.message)} for n in trajectory.nodes]
        out.append({"messages": said, "id": trajectory.id})
    return out


def _role(message: Message) -> str:
    return "user" if message.role == "tool" else message.role


def _content(message: Message) -> str:
    return blocks.write_turn(message) if message.role == "assistant" else message.text


def ours(file: Path, model: Path, out: Path) -> dict[str, float]:
    tokenizer = load_tokenizer(model)
    dialect = TextDialect(tokenizer, ("read", "edit", "test", "submit"))
    opening, print_of = opening_ids(dialect), fingerprint(tokenizer)
    cpu, wall = time.process_time(), time.monotonic()
    drops = Drops()
    lines = file.read_text(encoding="utf-8").splitlines()
    read = [chat.read(json.loads(line), Place(str(file), number)) for number, line in enumerate(lines, 1)]
    for number, trajectory in enumerate(read):
        trajectory.id = str(number)
    config = SelectConfig(min_reward=None, unscored=True, near_duplicates=0)
    builder = Builder(tokenizer=tokenizer, stop_ids=dialect.stop_token_ids, encoder=lambda t: dialect, drops=drops)
    samples = [s for t in select(read, config, drops) for s in builder.take(t)]
    header = Header(tokenizer=print_of, stop_ids=dialect.stop_token_ids, opening_ids=opening, mask=asdict(MaskConfig()))
    report = audit(samples, header, vocabulary=len(tokenizer), drops=drops)
    assert report.ok, report.findings[:3]
    write_samples(out / "samples.parquet", samples, header)
    took = {"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall}
    return {**took, "rows": len(samples), "tokens": report.tokens, "trained": report.trained}


def theirs(python: Path, file: Path, model: Path) -> dict[str, float]:
    run = subprocess.run([python, "-c", THEIRS, str(file), str(model)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"teich failed:\n{run.stderr[-2000:]}")
    line = next(x for x in run.stdout.splitlines() if x.startswith("RESULT "))
    result: dict[str, float] = json.loads(line.removeprefix("RESULT "))
    return result


def teich_python() -> Path:
    folder = cache_folder() / "benchmarks" / "teich"
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.is_file():
        print(f"installing {' '.join(TEICH)} into {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *TEICH], check=True)
        done.touch()
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--teich", type=Path, help="Python of an environment that has teich and transformers.")
    given = parser.parse_args()
    python, model = given.teich or teich_python(), resolve_model(given.model)
    runs: dict[str, list[dict[str, float]]] = {"teich": [], "inloop": []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in chat_rows(given.rows)), encoding="utf-8")
        ours(file, model, Path(folder))  # warms up
        for _ in range(given.rounds):
            runs["teich"].append(theirs(python, file, model))
            runs["inloop"].append(ours(file, model, Path(folder)))
    report(runs)


def report(runs: dict[str, list[dict[str, float]]]) -> None:
    middle = {
        name: {key: statistics.median(r[key] for r in of) for key in ("cpu", "wall", "rows", "tokens", "trained")}
        for name, of in runs.items()
    }
    print(f"{'':10}{'traces/CPU s':>14}{'tokens/CPU s':>14}{'traces/s':>10}{'rows':>7}{'tokens':>9}{'trained':>9}")
    for name, m in middle.items():
        print(
            f"{name:10}{m['rows'] / m['cpu']:14.0f}{m['tokens'] / m['cpu']:14.0f}{m['rows'] / m['wall']:10.0f}"
            f"{m['rows']:7.0f}{m['tokens']:9.0f}{m['trained']:9.0f}"
        )
    ratio = (middle["inloop"]["rows"] / middle["inloop"]["cpu"]) / (middle["teich"]["rows"] / middle["teich"]["cpu"])
    print(f"inloop / teich: {ratio:.1f}x traces a processor second")
    print(json.dumps({"ratio": ratio, **middle}))


if __name__ == "__main__":
    main()
