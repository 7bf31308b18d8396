"""Supervised fine-tuning on samples that are masked and audited before they come here."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inloop.data.audit import audit
from inloop.data.sample import Header, Sample, read_samples
from inloop.data.tokens import context_of, fingerprint, load_tokenizer
from inloop.engine.models import resolve_model
from inloop.errors import ConfigError, DataError
from inloop.files import write_json
from inloop.train import checkpoint
from inloop.train.run_folder import RunFolder, open_run
from inloop.train.sft_settings import Evaluate, SFTSettings, Trained


def sft(
    samples: Path, out: Path, settings: SFTSettings, *, evaluate: Evaluate | None = None, resume: bool = False
) -> Trained:
    """Train into the run folder `out`. Killed and called again with `resume`, it ends where it would have ended.

    Raises DataError when the audit of the samples, the tokenizer or the base model says no."""
    from inloop.train import sft_loop

    rows, header = read_samples(samples)
    tokenizer = load_tokenizer(resolve_model(settings.model))
    gate(rows, header, tokenizer, settings)
    train, held_out = split_rows(rows, settings.held_out, settings.seed)
    with open_run(out, settings, what="inloop sft", resume=resume) as run:
        run.event("sft", samples=str(samples), rows=len(rows), train=len(train), held_out=len(held_out))
        _note_data(run, rows, header)
        return sft_loop.run(run, train, held_out, header, tokenizer, settings, evaluate)


def gate(rows: Sequence[Sample], header: Header, tokenizer: Any, settings: SFTSettings) -> None:
    """Refuse what should not be trained on."""
    report = audit(rows, header, vocabulary=len(tokenizer))
    if not report.ok:
        first = report.findings[0]
        where = f"row {first.row}" if first.row >= 0 else "the file"
        raise DataError(
            f"the samples fail their audit, {len(report.findings)} findings; {where}: {first.check}: {first.detail}",
            fix="see `inloop data audit`; build the samples again",
        )
    if header.tokenizer and fingerprint(tokenizer) != header.tokenizer:
        raise DataError(
            f"the samples are made with the tokenizer of {header.model}, not with that of {settings.model}",
            fix=f"build them again with --set model={settings.model}",
        )
    limit, longest = context_of(resolve_model(settings.model)), max(len(row.input_ids) for row in rows)
    if limit and longest > limit:
        raise DataError(
            f"a sample has {longest} tokens, the model takes {limit}",
            fix="build again with --set max_tokens=" + str(limit),
        )
    if settings.packing and any(row.weights for row in rows):
        raise ConfigError("packing keeps no weights, and these samples have them", fix="train without packing")
    if settings.adapter:
        checkpoint.base_folder(Path(settings.adapter), settings.model)


def split_rows(rows: Sequence[Sample], share: float, seed: int) -> tuple[list[Sample], list[Sample]]:
    """(train, held out), by task: samples of one task never stand on both sides."""
    tasks = sorted({row.task or row.trajectory for row in rows})
    count = round(len(tasks) * share)
    kept_out = set(random.Random(seed).sample(tasks, count)) if count and count < len(tasks) else set()
    train = [r for r in rows if (r.task or r.trajectory) not in kept_out]
    return train, [r for r in rows if (r.task or r.trajectory) in kept_out]


def _note_data(run: RunFolder, rows: Sequence[Sample], header: Header) -> None:
    """A resumed run has to have the same data: the position in it means nothing otherwise."""
    file = run.root / "data.json"
    now = {
        "rows": len(rows),
        "tokens": sum(len(r.input_ids) for r in rows),
        "trained_tokens": sum(r.trained for r in rows),
        "by": header.counts,
        "mask": header.mask,
    }
    if run.writes and file.is_file() and json.loads(file.read_text(encoding="utf-8")) != now:
        raise DataError(f"{run.root}: the run was started on other samples", fix="resume with the same, or a new --out")
    if run.writes:
        write_json(file, now)
