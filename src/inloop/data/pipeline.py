"""`inloop data build`: ledgers in, a folder with `samples.parquet` and `drops.json` out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from inloop.config import to_dict
from inloop.data import decontaminate, provenance, selection
from inloop.data.audit import Audit, audit
from inloop.data.builder import Builder
from inloop.data.drops import NAME as DROPS
from inloop.data.drops import Drops
from inloop.data.mask import MaskConfig
from inloop.data.sample import NAME as SAMPLES
from inloop.data.sample import Header, Sample, read_samples, write_samples
from inloop.data.selection import SelectConfig
from inloop.data.tokens import context_of, fingerprint, load_tokenizer, opening_ids, template_hash
from inloop.engine.models import resolve_model
from inloop.errors import DataError, InloopError
from inloop.harness.config import HarnessConfig
from inloop.harness.dialect import Dialect, make_dialect
from inloop.harness.native import NativeDialect
from inloop.progress import Bar, bar
from inloop.trace.store import ledger, read_trajectories
from inloop.trace.trajectory import Trajectory
from inloop.types import Thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildConfig:
    model: str = "smollm2-135m"
    """Whose tokenizer: a name or a folder."""
    dialect: Literal["recorded", "text", "native"] = "recorded"
    """How text-only traces are rendered; 'recorded' takes what the trajectories say, else 'text'."""
    max_tokens: int = 0
    """Longer samples are dropped, counted; 0 takes the model's context."""
    select: SelectConfig = field(default_factory=SelectConfig)
    mask: MaskConfig = field(default_factory=MaskConfig)
    decontaminate: tuple[Path, ...] = ()
    """Tasksets that are evaluated on: nothing of them may be trained."""
    training_tasks: tuple[Path, ...] = ()
    """Tasksets that the trajectories are of: they tell the licence and the source unit of each."""


@dataclass(slots=True, kw_only=True)
class Built:
    samples: list[Sample]
    header: Header
    drops: Drops
    report: Audit
    folder: Path

    def to_dict(self) -> dict[str, Any]:
        counts = {k: v for k, v in self.drops.to_dict().items() if k != "dropped"}
        return {"out": str(self.folder), **counts, "by": self.header.counts, "audit": self.report.to_dict()}


def build_folder(inputs: Sequence[Path], out: Path, config: BuildConfig) -> Built:
    """Select, render or take over, mask, audit, write. Raises DataError when nothing is left to learn from."""
    folder = resolve_model(config.model)
    tokenizer = load_tokenizer(folder)
    drops = Drops()
    with bar("build") as progress:
        kept = _select(read_all(inputs, drops, progress), config, drops)
        harness = _harness(kept, config, drops)
        dialect = make_dialect(harness, tokenizer)
        limit = config.max_tokens or context_of(folder)
        builder = Builder(
            tokenizer=tokenizer,
            stop_ids=dialect.stop_token_ids,
            encoder=encoders(dialect, tokenizer, harness),
            config=config.mask,
            max_tokens=limit,
            drops=drops,
        )
        samples = _build(kept, builder, progress)
    header = _header(tokenizer, dialect, harness, replace(config, max_tokens=limit), samples)
    drops.write(out / DROPS)
    if not samples:
        reasons = ", ".join(f"{n} x {r}" for r, n in drops.reasons("trajectory").items()) or "the input is empty"
        raise DataError(f"no sample is left: {reasons}", fix=f"see {out / DROPS}; loosen [select], or collect more")
    report = audit(samples, header, vocabulary=len(tokenizer), drops=drops)
    write_samples(out / SAMPLES, samples, header)
    return Built(samples=samples, header=header, drops=drops, report=report, folder=out)


def read_all(inputs: Sequence[Path], drops: Drops, progress: Bar) -> Iterator[Trajectory]:
    """Every trajectory of every ledger; lines that can't be read and repeated ids are counted."""
    seen: set[str] = set()
    for path in inputs:
        file = ledger(path)
        if not file.is_file():
            raise DataError(f"{file}: no such file", fix="give a trajectories.jsonl or the run folder that holds one")
        trajectories, skipped = read_trajectories(file)
        for trajectory in trajectories:
            progress.step(note=file.parent.name)
            if trajectory.id in seen:
                drops.drop("line", f"{file}: {trajectory.id}", "id already read")
                continue
            seen.add(trajectory.id)
            yield trajectory
        for line in skipped:
            drops.drop("line", f"{line.file}:{line.line}", line.reason)


def _select(trajectories: Iterable[Trajectory], config: BuildConfig, drops: Drops) -> list[Trajectory]:
    known = provenance.from_tasks(trajectories, config.training_tasks)
    screens = [decontaminate.screen(config.decontaminate)] if config.decontaminate else []
    return selection.select(known, config.select, drops, screens)


def _build(kept: list[Trajectory], builder: Builder, progress: Bar) -> list[Sample]:
    out: list[Sample] = []
    for trajectory in kept:
        out += builder.take(trajectory)
        progress.step(0, note=f"{len(out)} samples")
    return out


def encoders(dialect: Dialect, tokenizer: Any, harness: HarnessConfig) -> Callable[[Trajectory], Dialect]:
    """The dialect that renders a text-only trace; a native one shows the trace's own tools, and lets it think."""
    made: dict[tuple[str, bool], Dialect] = {}

    def encoder(trajectory: Trajectory) -> Dialect:
        if not isinstance(dialect, NativeDialect):
            return dialect
        thinks = harness.thinking or any(isinstance(p, Thinking) for n in trajectory.nodes for p in n.message.parts)
        key = json.dumps(trajectory.tools, sort_keys=True), thinks
        if key not in made:
            source, tools = dialect.template.source, trajectory.tools
            made[key] = NativeDialect(tokenizer, dialect.tools, source=source, thinking=thinks, shown=tools)
        return made[key]

    return encoder


def _harness(kept: list[Trajectory], config: BuildConfig, drops: Drops) -> HarnessConfig:
    """The harness that most of the trajectories were made with; its dialect renders what is text only."""
    counts = Counter(json.dumps(t.harness, sort_keys=True) for t in kept if t.harness)
    if len(counts) > 1:
        drops.notes["trajectory of another harness config than the one recorded"] += sum(counts.values()) - max(
            counts.values()
        )
    harness = HarnessConfig()
    if counts:
        try:
            harness = HarnessConfig.from_dict(json.loads(counts.most_common(1)[0][0]))
        except InloopError as error:  # an external agent's, or one of another version
            drops.notes[f"harness config that can't be read: {error.message}"] += max(counts.values())
    return harness if config.dialect == "recorded" else replace(harness, dialect=config.dialect)


def _header(
    tokenizer: Any, dialect: Dialect, harness: HarnessConfig, config: BuildConfig, samples: list[Sample]
) -> Header:
    return Header(
        tokenizer=fingerprint(tokenizer),
        model=config.model,
        stop_ids=tuple(dialect.stop_token_ids),
        opening_ids=opening_ids(dialect),
        dialect=dialect.name,
        template=template_hash(tokenizer),
        harness=harness.record(),
        mask=to_dict(config.mask),
        max_tokens=config.max_tokens,
        counts=counts(samples),
    )


def counts(samples: Iterable[Sample]) -> dict[str, dict[str, int]]:
    """Samples by source, licence, teacher and where their tokens come from."""
    out: dict[str, Counter[str]] = {k: Counter() for k in ("source", "licence", "teacher", "tokens")}
    for sample in samples:
        for key, counter in out.items():
            counter[str(sample.meta.get(key) or "unknown")] += 1
    return {k: dict(c.most_common()) for k, c in out.items()}


def audit_folder(path: Path, model: str = "") -> Audit:
    """Audit a samples file, with the drops beside it and the tokenizer of `model` (default: the one it names)."""
    samples, header = read_samples(path)
    beside = (path if path.is_dir() else path.parent) / DROPS
    drops = Drops.from_dict(json.loads(beside.read_text(encoding="utf-8"))) if beside.is_file() else None
    tokenizer = load_tokenizer(resolve_model(model or header.model))
    report = audit(samples, header, vocabulary=len(tokenizer), drops=drops)
    check_tokenizer(report, header, tokenizer)
    return report


def check_tokenizer(report: Audit, header: Header, tokenizer: Any) -> None:
    """Whether the ids are of this tokenizer, and the recorded dialect still holds for it."""
    if header.tokenizer and fingerprint(tokenizer) != header.tokenizer:
        report.find("template", "the ids are of another tokenizer")
        return
    if header.template and template_hash(tokenizer) != header.template:
        report.find("template", "the tokenizer has another chat template than at build")
    try:
        make_dialect(HarnessConfig.from_dict(header.harness), tokenizer)
    except InloopError as error:
        report.find("template", error.message)
