"""Samples cut, glued, truncated, re-encoded and interleaved: never a crash, never a silent loss, counts add up."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from inloop.trace.check import check
from inloop.trace.read.paths import sources
from inloop.trace.read.route import Tally
from inloop.trace.skipped import Skipped
from inloop.trace.trajectory import Trajectory

SAMPLES = Path(__file__).parents[1] / "data" / "traces"
TEXTS = sorted(p for p in SAMPLES.rglob("*") if p.suffix in (".jsonl", ".json", ".traj") and p.stat().st_size < 20_000)
LINES = [p for p in TEXTS if p.suffix == ".jsonl"]
ANY = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def read(raw: bytes, name: str = "x.bin") -> tuple[list[Trajectory], list[Skipped], Tally]:
    """Whatever comes out obeys the invariants, and every record is in one place."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(raw)
        skipped: list[Skipped] = []
        tally = Tally()
        (source,) = sources([path], skipped)
        found = list(source.read(skipped, tally))
    lost = sum(s.kind == "record" for s in skipped)
    assert tally.records == tally.used + tally.metadata.total() + lost
    assert found or skipped, "nothing was read and nothing says why"
    assert all(s.reason for s in skipped)
    for trajectory in found:
        assert [f for f in check(trajectory) if f.level == "error"] == []
        assert trajectory.nodes and Trajectory.from_dict(json.loads(json.dumps(trajectory.to_dict())))
        json.dumps(trajectory.to_dict(), ensure_ascii=False).encode()  # no lone surrogate is left
    return found, skipped, tally


def whole_lines(raw: bytes) -> int:
    return sum(1 for line in raw.split(b"\n") if line.strip(b"\r\n \t\0\xef\xbb\xbf"))


def files(of: list[Path]) -> st.SearchStrategy[bytes]:
    return st.sampled_from(of).map(Path.read_bytes)


@given(files(TEXTS), st.floats(0, 1), st.floats(0, 1))
@ANY
def test_cut_anywhere(raw: bytes, start: float, end: float) -> None:
    low, high = sorted((int(start * len(raw)), int(end * len(raw))))
    read(raw[low:high])


@given(files(LINES), st.integers(0, 400))
@ANY
def test_a_truncated_file_loses_its_last_line_only(raw: bytes, cut: int) -> None:
    kept = raw[: max(0, len(raw) - cut)]
    _, skipped, tally = read(kept)
    unread = sum(s.kind in ("line", "torn") for s in skipped)
    if tally.records:
        assert unread <= 1
        assert tally.records >= whole_lines(kept) - 1


@given(st.lists(files(LINES), min_size=2, max_size=5))
@ANY
def test_glued_files_lose_nothing(raws: list[bytes]) -> None:
    """End to end, without a line end between them where the last file had none."""
    single = [read(raw)[2].records for raw in raws]
    joined = b"".join(raw if raw.endswith(b"\n") or not raw else raw + b"\n" for raw in raws)
    _, _, tally = read(joined)
    assert tally.records == sum(single)


@given(files(LINES), st.data())
@ANY
def test_line_ends_taken_out(raw: bytes, data: st.DataObject) -> None:
    """Glued records are read one by one."""
    rows = [row for row in raw.split(b"\n") if row.strip()]
    ends = data.draw(
        st.lists(
            st.sampled_from([b"\n", b"", b" ", b"\r\n", b"\n\n", b"\0\0\n"]), min_size=len(rows), max_size=len(rows)
        )
    )
    _, skipped, tally = read(b"".join(row + end for row, end in zip(rows, ends, strict=True)))
    _, before, expected = read(raw)
    if not any(s.kind == "torn" for s in before):
        assert tally.records == expected.records
        assert sum(s.kind in ("line", "torn") for s in skipped) == sum(s.kind in ("line", "torn") for s in before)


@given(st.lists(files(LINES), min_size=2, max_size=4), st.randoms(use_true_random=False))
@ANY
def test_interleaved_lines_are_told_apart(raws: list[bytes], rng: random.Random) -> None:
    rows = [[row for row in raw.split(b"\n") if row.strip()] for raw in raws]
    mixed = []
    while any(rows):
        mixed.append(rng.choice([r for r in rows if r]).pop(0))
    single = [read(raw) for raw in raws]
    _, skipped, tally = read(b"\n".join(mixed) + b"\n")
    assert tally.records == sum(t.records for _, _, t in single)
    unread = [sum(s.kind in ("line", "torn") for s in found) for found in (skipped, *(s for _, s, _ in single))]
    assert unread[0] == sum(unread[1:])


@given(files(TEXTS), st.sampled_from(["utf-16", "utf-8-sig", "utf-16-be-bom", "crlf", "gzip", "zstd", "zstd frames"]))
@ANY
def test_re_encoded_files_say_the_same(raw: bytes, how: str) -> None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return
    encoded = {
        "utf-16": lambda: text.encode("utf-16"),
        "utf-8-sig": lambda: text.encode("utf-8-sig"),
        "utf-16-be-bom": lambda: b"\xfe\xff" + text.encode("utf-16-be"),
        "crlf": lambda: raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
        "gzip": lambda: gzip.compress(raw[:99]) + gzip.compress(raw[99:]),
        "zstd": lambda: zstandard.ZstdCompressor().compress(raw),
        "zstd frames": lambda: b"".join(zstandard.ZstdCompressor().compress(p) for p in (raw[:99], raw[99:])),
    }[how]()
    before, after = read(raw), read(encoded)
    assert [t.counts for t in after[0]] == [t.counts for t in before[0]]
    assert [(s.line, s.kind) for s in after[1]] == [(s.line, s.kind) for s in before[1]]


@given(files(TEXTS), st.data())
@ANY
def test_bytes_changed(raw: bytes, data: st.DataObject) -> None:
    out = bytearray(raw)
    for at in data.draw(st.lists(st.integers(0, max(0, len(raw) - 1)), max_size=6)):
        if out:
            out[at] = data.draw(st.integers(0, 255))
    read(bytes(out))


def mangled(value: object, rng: random.Random, depth: int = 0) -> object:
    """The same JSON with a value here and there replaced, dropped or wrapped."""
    if depth and not rng.randrange(60):
        return rng.choice([None, 5, "", "x", [], {}, [1], {"a": 1}, True, -1.5, "\ud800", 10**30, [[]], {"type": []}])
    if isinstance(value, dict):
        return {k: mangled(v, rng, depth + 1) for k, v in value.items() if rng.randrange(90) or not depth}
    if isinstance(value, list):
        return [mangled(v, rng, depth + 1) for v in value]
    return value


@example(SAMPLES / "atif/subagent.json", 186883)  # an id that is a list
@given(st.sampled_from(TEXTS), st.integers(0, 1 << 40))
@settings(ANY, max_examples=400)
def test_values_of_the_wrong_kind(path: Path, seed: int) -> None:
    """Every key of a foreign record may be missing or of another type."""
    if raw := mangled_file(path, random.Random(seed)):
        read(raw)


def mangled_file(path: Path, rng: random.Random) -> bytes:
    raw = path.read_bytes().replace(b"\xef\xbb\xbf", b"")
    try:
        if path.suffix != ".jsonl":
            return json.dumps(mangled(json.loads(raw), rng), indent=1).encode()
        rows = [json.loads(row) for row in raw.split(b"\n") if row.strip()]
    except ValueError:
        return b""
    return b"\n".join(json.dumps(mangled(row, rng)).encode() for row in rows) + b"\n"


@pytest.mark.parametrize(
    "path", [SAMPLES / "opencode" / "opencode.db", SAMPLES / "inspect" / "calc.eval"], ids=lambda p: p.name
)
@given(data=st.data())
@settings(ANY, max_examples=25)
def test_binary_files_damaged(path: Path, data: st.DataObject) -> None:
    raw = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=4)):
        raw[at] = data.draw(st.integers(0, 255))
    read(bytes(raw[: data.draw(st.integers(len(raw) // 2, len(raw)))]))
