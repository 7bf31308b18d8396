"""Acceptance: people judge deliverables blind, and what they say is set beside what the tests said."""

from __future__ import annotations

import hashlib
import math
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inloop.errors import ConfigError, DataError
from inloop.files import append_json, read_json_lines
from inloop.report.detail import plain
from inloop.report.watch import Found, Watched
from inloop.stats import compare, mean_interval
from inloop.trace.trajectory import Trajectory

NAME = "reviews.jsonl"
JUDGE = "llm:"
"""A reviewer whose name starts so is a model: compared with people, not counted among them."""
REASON = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    rollout: str
    """Its key."""
    reviewer: str
    accept: bool
    reason: str = ""
    time: float = 0.0

    @property
    def by_model(self) -> bool:
        return self.reviewer.startswith(JUDGE)


def read_reviews(root: Path) -> list[Review]:
    """Of each reviewer the last word on each rollout; lines that can't be read are passed over."""
    file = root / NAME
    last: dict[tuple[str, str], Review] = {}
    for _, row in read_json_lines(file) if file.is_file() else ():
        if isinstance(row, dict) and isinstance(row.get("accept"), bool):
            known = {k: row[k] for k in ("rollout", "reviewer", "accept", "reason", "time") if k in row}
            if isinstance(known.get("rollout"), str) and isinstance(known.get("reviewer"), str):
                last[known["reviewer"], known["rollout"]] = Review(**known)
    return list(last.values())


class Desk:
    """Hands out deliverables and takes verdicts; nothing that it hands out says whose work it is."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.lock = threading.Lock()

    def deliverables(self) -> list[Found]:
        """What an agent handed in and the tests could judge: of the evaluations, where there are any."""
        rows = [r for r in self.watched.find() if r.entry.value is not None and not r.entry.stop.endswith("_fault")]
        scored = [r for r in rows if r.folder in self.watched.run.evaluations]
        return scored or rows

    def next(self, reviewer: str) -> dict[str, Any]:
        """The next one in this reviewer's own order, without its source or the judge's verdict."""
        _named(reviewer)
        done = {r.rollout for r in read_reviews(self.watched.root) if r.reviewer == reviewer}
        rows = sorted(self.deliverables(), key=lambda r: _digest(f"{reviewer}\0{r.key}"))
        left = [r for r in rows if r.key not in done]
        told = {"done": len(rows) - len(left), "of": len(rows)}
        return told | (blind(left[0], self.watched.load(left[0])) if left else {"item": None})

    def judge(self, item: str, reviewer: str, accept: bool, reason: str) -> None:
        """Append one verdict. Raises DataError for an unknown item, ConfigError for a missing name or reason."""
        _named(reviewer)
        if not reason.strip():
            raise ConfigError("a verdict needs its reason", fix="say in a few words why")
        found = next((r for r in self.deliverables() if item_of(r) == item), None)
        if found is None:
            raise DataError(f"no deliverable {item!r}")
        row = {
            "time": round(time.time(), 3),
            "rollout": found.key,
            "task": found.entry.task,
            "reviewer": reviewer,
            "accept": accept,
            "reason": reason.strip()[:REASON],
        }
        with self.lock:
            append_json(self.watched.root / NAME, row)


def _named(reviewer: str) -> None:
    if not reviewer.strip() or len(reviewer) > 80:
        raise ConfigError("a review needs the reviewer's name", fix="give one of at most 80 characters")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def item_of(found: Found) -> str:
    """A name that says nothing of where it comes from."""
    return _digest(found.key)[:16]


def blind(found: Found, t: Trajectory) -> dict[str, Any]:
    """Instruction, diff, and what the visible tests said last; the hidden tests' verdict would lead the eye."""
    asked = next((n.message.text for n in t.nodes if n.message.role == "user"), "")
    return {
        "item": item_of(found),
        "instruction": plain(asked),
        "diff": plain(t.diff or ""),
        "tests": plain(last_test(t)),
    }


def last_test(t: Trajectory) -> str:
    """The result of the last test run of the agent; '' when it never ran them."""
    calls = {c.id for n in t.nodes for c in n.message.all_calls if c.name == "test"}
    results = [n.message.text for n in t.nodes if n.message.call_id in calls and n.message.role != "assistant"]
    return results[-1] if results else ""


def summary(reviews: Sequence[Review], found: Mapping[str, Found]) -> dict[str, Any]:
    """Rates with intervals over tasks, agreement, and the gap between tests or a model and people."""
    known = [r for r in reviews if r.rollout in found]
    people = [r for r in known if not r.by_model]
    models = [r for r in known if r.by_model]
    judged = {r.rollout: float(found[r.rollout].entry.passed) for r in people}
    return {
        "reviews": len(people),
        "reviewers": sorted({r.reviewer for r in people}),
        "deliverables": len({r.rollout for r in people}),
        "unknown": len(reviews) - len(known),
        "acceptance": _rate(people, found),
        "by_source": {
            folder: _rate([r for r in people if found[r.rollout].folder == folder], found)
            for folder in sorted({found[r.rollout].folder for r in people})
        },
        "agreement": agreement(people),
        "tests_against_people": gap(people, judged, found),
        "models_against_people": {
            name: gap(people, {r.rollout: float(r.accept) for r in models if r.reviewer == name}, found)
            for name in sorted({r.reviewer for r in models})
        },
    }


def _rate(reviews: Iterable[Review], found: Mapping[str, Found]) -> dict[str, Any]:
    """Mean over tasks of the mean over their deliverables of the share of reviewers who accept."""
    tasks = _by_task(_shares(reviews), found)
    interval = mean_interval(list(tasks.values()))
    mean = None if math.isnan(interval.mean) else interval.mean
    return {"mean": mean, "low": interval.low, "high": interval.high, "tasks": len(tasks)}


def _shares(reviews: Iterable[Review]) -> dict[str, float]:
    votes: dict[str, list[float]] = defaultdict(list)
    for review in reviews:
        votes[review.rollout].append(float(review.accept))
    return {rollout: statistics.fmean(v) for rollout, v in votes.items()}


def _by_task(values: Mapping[str, float], found: Mapping[str, Found]) -> dict[str, float]:
    tasks: dict[str, list[float]] = defaultdict(list)
    for rollout, value in values.items():
        tasks[found[rollout].entry.task or rollout].append(value)
    return {task: statistics.fmean(v) for task, v in tasks.items()}


def agreement(reviews: Sequence[Review]) -> dict[str, Any]:
    """Share of pairs of verdicts on one deliverable that agree, and Krippendorff's alpha: the same beyond chance, for
    any number of reviewers who need not have seen the same (of two who have, it is Scott's pi up to a small term).

    None where nobody judged what another did, or all said the same, so that there is no chance to go beyond."""
    import krippendorff
    import numpy as np

    names, items = sorted({r.reviewer for r in reviews}), sorted({r.rollout for r in reviews})
    table = np.full((len(names), len(items)), np.nan)
    for r in reviews:
        table[names.index(r.reviewer), items.index(r.rollout)] = float(r.accept)
    shared = table[:, (~np.isnan(table)).sum(axis=0) > 1] if items else table
    pairs, agree = 0, 0
    for column in shared.T:
        votes = column[~np.isnan(column)]
        yes, no = int(votes.sum()), int(len(votes) - votes.sum())
        pairs += len(votes) * (len(votes) - 1) // 2
        agree += yes * (yes - 1) // 2 + no * (no - 1) // 2
    said = set(shared[~np.isnan(shared)].tolist())
    alpha = krippendorff.alpha(reliability_data=shared, level_of_measurement="nominal") if len(said) > 1 else None
    return {
        "shared": int(shared.shape[1]) if pairs else 0,
        "observed": agree / pairs if pairs else None,
        "alpha": None if alpha is None else float(alpha),
    }


def gap(people: Sequence[Review], judge: Mapping[str, float], found: Mapping[str, Found]) -> dict[str, Any]:
    """How much more often the judge accepts than people do, paired over tasks, and where the two part."""
    shares = {k: v for k, v in _shares(people).items() if k in judge}
    theirs, its = _by_task(shares, found), _by_task({k: judge[k] for k in shares}, found)
    out: dict[str, Any] = {
        "deliverables": len(shares),
        "judge_yes_people_no": sorted(k for k, v in shares.items() if v < 0.5 and judge[k] == 1),
        "judge_no_people_yes": sorted(k for k, v in shares.items() if v > 0.5 and judge[k] == 0),
    }
    if not theirs:
        return out | {"effect": None}
    r = compare([theirs[t] for t in theirs], [its[t] for t in theirs])
    word = {"better": "more lenient", "worse": "stricter"}.get(r.verdict, r.verdict)
    return out | {"effect": r.effect, "low": r.low, "high": r.high, "p": r.p, "tasks": r.tasks, "verdict": word}
