"""A sample is one context that the model saw, as token ids, with the tokens that bear loss."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from inloop.errors import DataError
from inloop.files import write_atomic

MASKED = -100
"""The label of a token that bears no loss."""
NAME = "samples.parquet"
FORMAT = 1


@dataclass(slots=True, kw_only=True)
class Span:
    """The tokens [start, end) that one message added."""

    node: str
    role: str
    start: int
    end: int
    sampled: bool = False
    trained: bool = False
    why: str = ""
    """Of a sampled message that does not train: the reason."""


@dataclass(slots=True, kw_only=True)
class Sample:
    id: str
    """'<trajectory>#<leaf node>'."""
    trajectory: str
    input_ids: list[int]
    """(T,)"""
    labels: list[int]
    """(T,): the id where it bears loss, -100 elsewhere. Not shifted."""
    spans: list[Span] = field(default_factory=list)
    """In order, without gaps, over the whole of `input_ids`."""
    logprobs: list[float] | None = None
    """(T,) of captured rollouts: what the sampler gave its tokens; 0 at every other token."""
    weights: list[float] | None = None
    """(T,): factor of each token's loss; None is 1 everywhere."""
    advantage: float | None = None
    """RL: one for the whole sample."""
    weight_version: int | None = None
    """RL: the oldest weights that sampled a part of it."""
    task: str | None = None
    group: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    """Provenance: reward, source, licence, teacher, model, turns, tokens ('captured' or 'rendered')."""

    @property
    def trained(self) -> int:
        """How many tokens bear loss; the first token has nothing that predicts it."""
        return len(self.labels) - self.labels.count(MASKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a samples file says about all of its rows."""

    tokenizer: str = ""
    """Fingerprint of the vocabulary that the ids are of."""
    model: str = ""
    stop_ids: tuple[int, ...] = ()
    """Tokens that end a turn."""
    opening_ids: tuple[int, ...] = ()
    """What stands right before every turn: the dialect hands over to the model there. Empty is not known."""
    dialect: str = ""
    template: str = ""
    """Hash of the chat template."""
    harness: dict[str, Any] = field(default_factory=dict)
    """The resolved harness config of the trajectories, with its hash, where they agree."""
    mask: dict[str, Any] = field(default_factory=dict)
    max_tokens: int = 0
    """Samples above this were dropped; 0 is no limit."""
    counts: dict[str, Any] = field(default_factory=dict)


def write_samples(path: Path, samples: Sequence[Sample], header: Header) -> None:
    """Parquet, written whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {
        "id": [s.id for s in samples],
        "trajectory": [s.trajectory for s in samples],
        "task": [s.task for s in samples],
        "group": [s.group for s in samples],
        "input_ids": [s.input_ids for s in samples],
        "labels": [s.labels for s in samples],
        "logprobs": [s.logprobs for s in samples],
        "weights": [s.weights for s in samples],
        "advantage": [s.advantage for s in samples],
        "weight_version": [s.weight_version for s in samples],
        "spans": [[_span(x) for x in s.spans] for s in samples],
        "meta": [json.dumps(s.meta, ensure_ascii=False, default=str) for s in samples],
    }
    about = {"format": FORMAT, **asdict(header)}
    schema = _schema().with_metadata({"inloop": json.dumps(about, ensure_ascii=False)})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(rows, schema=schema), sink, compression="zstd")
    write_atomic(path, sink.getvalue().to_pybytes())


def read_samples(path: Path) -> tuple[list[Sample], Header]:
    """All rows of a samples file (or of the one in a folder). Raises DataError when it isn't one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = path / NAME if path.is_dir() else path
    if not file.is_file():
        raise DataError(f"{file}: no such file", fix="make it with `inloop data build TRAJECTORIES --out DIR`")
    try:
        table = pq.read_table(file)
        about = json.loads((table.schema.metadata or {})[b"inloop"])
        return list(_samples(table)), _header(about)
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        raise DataError(
            f"{file}: not a samples file: {type(error).__name__}: {error}", fix="make it with `inloop data build`"
        ) from None


def pick_rows(samples: Sequence[Sample], rows: str) -> list[tuple[int, Sample]]:
    """'0,3-5' or 'all' -> (row, sample). Raises DataError for a row that isn't there."""
    try:
        wanted = [*range(len(samples))] if rows == "all" else [n for part in rows.split(",") for n in _range(part)]
    except ValueError:
        raise DataError(f"--rows {rows}: not a list of rows", fix="for example 0,3-5, or all") from None
    if outside := [n for n in wanted if not 0 <= n < len(samples)]:
        raise DataError(f"row {outside[0]} is not there: the file has {len(samples)}", fix="rows count from 0")
    return [(n, samples[n]) for n in wanted]


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    return range(int(first), int(last) + 1 if dash else int(first) + 1)


def _samples(table: Any) -> Iterator[Sample]:
    """Arrow hands its columns out as Python objects; a slice at a time keeps the peak low."""
    for batch in table.to_batches(max_chunksize=1024):
        for row in batch.to_pylist():
            spans = [Span(**s) for s in row.pop("spans")]
            yield Sample(**{**row, "spans": spans, "meta": json.loads(row["meta"])})


def _header(about: dict[str, Any]) -> Header:
    if about.pop("format") != FORMAT:
        raise ValueError("made by another version of inloop")
    return Header(**{**about, "stop_ids": tuple(about["stop_ids"]), "opening_ids": tuple(about["opening_ids"])})


def _span(span: Span) -> dict[str, Any]:
    return {k: getattr(span, k) for k in Span.__slots__}


def _schema() -> Any:
    import pyarrow as pa

    span = pa.struct(
        [
            ("node", pa.string()),
            ("role", pa.string()),
            ("start", pa.int32()),
            ("end", pa.int32()),
            ("sampled", pa.bool_()),
            ("trained", pa.bool_()),
            ("why", pa.string()),
        ]
    )
    return pa.schema(
        [
            ("id", pa.string()),
            ("trajectory", pa.string()),
            ("task", pa.string()),
            ("group", pa.string()),
            ("input_ids", pa.list_(pa.int32())),
            ("labels", pa.list_(pa.int32())),
            ("logprobs", pa.list_(pa.float32())),
            ("weights", pa.list_(pa.float32())),
            ("advantage", pa.float64()),
            ("weight_version", pa.int64()),
            ("spans", pa.list_(span)),
            ("meta", pa.string()),
        ]
    )
