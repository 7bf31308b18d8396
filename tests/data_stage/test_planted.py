"""40 planted secrets of 20 kinds, up to the samples file: none in it, placeholders untrained, all else as it was."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from data_stage.episodes import capture, result, turn
from planted import Planted, planted

from inloop.data.pipeline import BuildConfig, build_folder
from inloop.data.sample import MASKED, Sample, read_samples
from inloop.data.selection import SelectConfig
from inloop.harness.text import TextDialect
from inloop.trace.importing import import_traces
from inloop.trace.redact.apply import Redactor
from inloop.trace.redact.find import PLACEHOLDER
from inloop.trace.store import TrajectoryStore, read_trajectories
from inloop.trace.trajectory import Node, Trajectory
from inloop.types import Reward, StopReason, Verdict, message

SECRETS = planted()


def told(item: Planted, number: int) -> Trajectory:
    """The secret in what was asked, seen, said and written; every turn also has words without it."""
    said = [
        message("system", "Fix the code."),
        message("user", f"Case {number}, here: {item.said}"),
        turn(f"I see {item.said} in it.\n", "read", "read-1", path="calc.py"),
        result(f"# {item.said}\nx = {number}\n", "read-1"),
        turn(f"So {item.said} stands there.\n", "edit", "edit-2", path="calc.py", old=f"# {item.said}", new="# gone"),
        result("edited calc.py", "edit-2"),
        turn("No secret here.\n", "submit", "submit-3"),
    ]
    nodes = [
        Node(id=f"m{i}", parent=f"m{i - 1}" if i else None, message=m, sampled=m.role == "assistant")
        for i, m in enumerate(said)
    ]
    reward = Reward(value=1.0, verdict=Verdict.PASSED)
    return Trajectory(id=f"t{number:02}", nodes=nodes, task_id=f"t{number}", reward=reward, stop=StopReason.SUBMITTED)


def pieces(sample: Sample, tokenizer: Any) -> list[str]:
    """The text of each token by itself; the planted texts are ASCII, so none of them shares a character."""
    return [tokenizer.decode([i], skip_special_tokens=False) for i in sample.input_ids]


def placeholders(text: list[str]) -> Iterator[list[int]]:
    """The tokens of each placeholder."""
    ends = [0]
    for piece in text:
        ends.append(ends[-1] + len(piece))
    for found in PLACEHOLDER.finditer("".join(text)):
        yield [i for i, (a, b) in enumerate(pairwise(ends)) if a < found.end() and b > found.start()]


def kept(count: int, cut: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What lies between the cuts."""
    marks = [0, *(edge for span in cut for edge in span), count]
    return [(a, b) for a, b in zip(marks[::2], marks[1::2], strict=True) if a < b]


@pytest.mark.parametrize("captured", [True, False], ids=["captured ids", "text only"])
def test_secrets_up_to_the_samples_file(
    captured: bool, dialect: TextDialect, tokenizer: Any, tiny_model: Path, tmp_path: Path
) -> None:
    before = [told(item, n) for n, item in enumerate(SECRETS)]
    if captured:
        before = [capture(t, dialect) for t in before]
    TrajectoryStore(tmp_path / "in").extend(before)
    summary = import_traces([tmp_path / "in"], tmp_path / "out", redactor=Redactor(b"s" * 32, tokenizer))
    assert summary.trajectories == 40 and summary.nodes_without_ids == 0
    config = BuildConfig(
        model=str(tiny_model), max_tokens=1 << 20, select=SelectConfig(near_duplicates=0.0, duplicates=False)
    )
    built = build_folder([tmp_path / "out"], tmp_path / "data", config)
    assert built.report.ok, built.report.to_dict()
    samples, _ = read_samples(tmp_path / "data")
    assert len(samples) == 40
    after = {t.id: t for t in read_trajectories(tmp_path / "out")[0]}
    for item, old, sample in zip(SECRETS, before, samples, strict=True):
        text = pieces(sample, tokenizer)
        whole = "".join(text)
        lines = [row for row in item.secret.split("\n") if "-----" not in row]
        assert not [row for row in lines if row in whole], item.kind
        found = list(placeholders(text))
        assert len(found) >= 5 and all(sample.labels[i] == MASKED for tokens in found for i in tokens), item.kind
        trained = "".join(t for t, label in zip(text, sample.labels, strict=True) if label != MASKED)
        assert "I see " in trained and "No secret here." in trained and "REDACTED" not in trained
        if captured:
            unchanged(old, after[sample.trajectory], sample)


def unchanged(old: Trajectory, new: Trajectory, sample: Sample) -> None:
    """Outside of the cuts ids and log-probabilities are those that were sampled, and turns are trained."""
    assert sample.logprobs is not None
    were, are = old.by_id(), new.by_id()
    for span in sample.spans:
        ids, labels = sample.input_ids[span.start : span.end], sample.labels[span.start : span.end]
        given, node = were[span.node], are[span.node]
        assert given.token_ids is not None
        at, runs = 0, kept(len(ids), node.untrained_ids)
        for start, end in runs:
            run = ids[start:end]
            place = next(i for i in range(at, len(given.token_ids)) if given.token_ids[i : i + len(run)] == run)
            at = place + len(run)
            if span.sampled:
                assert labels[start:end] == run
                scored = sample.logprobs[span.start + start : span.start + end]
                assert given.logprobs is not None and scored == pytest.approx(given.logprobs[place:at], abs=1e-6)
        assert given.token_ids[: runs[0][1]] == ids[: runs[0][1]]
        assert given.token_ids[-(runs[-1][1] - runs[-1][0]) :] == ids[runs[-1][0] :]
        assert bool(node.untrained_ids) == (given.token_ids != ids)
