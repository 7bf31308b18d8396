"""The figures of a report as plain data: what the page shows and `--json` prints."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from inloop.errors import DataError
from inloop.evaluate.compare import Pair, compare_pair
from inloop.evaluate.results import Results
from inloop.files import read_json_lines
from inloop.report.ledger import Ledger
from inloop.report.scan import Run, Training


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    a: str
    """Folder."""
    b: str
    pair: Pair
    headline: bool = False
    """The one that a person wants to know first: the first checkpoint against the last."""

    @property
    def sentence(self) -> str:
        r = self.pair.comparison
        return (
            f"{self.pair.b} against {self.pair.a}: {r.verdict}, {100 * r.effect:+.1f} points "
            f"[{100 * r.low:+.1f}, {100 * r.high:+.1f}], p = {r.p:.2g} over {r.tasks} tasks"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"folders": [self.a, self.b], "headline": self.headline, **self.pair.to_dict()}


def named(run: Run) -> dict[str, Results]:
    """The evaluations; where two bear one name, the folder tells them apart."""
    often = Counter(r.name for r in run.evaluations.values())
    return {f: r if often[r.name] == 1 and r.name else replace(r, name=f) for f, r in run.evaluations.items()}


def compared(run: Run) -> tuple[list[Compared], list[str]]:
    """Pairs on the same tasks, and in words why others were not compared."""
    grounds: dict[str, list[tuple[str, Results]]] = defaultdict(list)
    for folder, results in named(run).items():
        grounds[str(results.taskset.get("hash"))].append((folder, results))
    out: list[Compared] = []
    notes: list[str] = []
    for rows in grounds.values():
        for a, b in _pairs(rows):
            try:
                pair = compare_pair(a[1], b[1])
            except DataError as error:
                notes.append(f"not compared: {error.message}")
                continue
            out.append(Compared(a=a[0], b=b[0], pair=pair, headline=(a, b) == (rows[0], rows[-1])))
    if len(grounds) > 1:
        told = "; ".join(", ".join(r.name for _, r in rows) for rows in grounds.values())
        notes.append(f"scored on different tasks, so not compared across: {told}")
    return out, notes


def _pairs(rows: list[tuple[str, Results]]) -> Iterator[tuple[tuple[str, Results], tuple[str, Results]]]:
    """Each with the one before it and the last with the first; of one checkpoint under several settings, each with
    the first."""
    made = {str(r.checkpoint.get("fingerprint") or r.checkpoint.get("model")) for _, r in rows}
    if len(made) == 1 and len(rows) > 1:
        yield from ((rows[0], other) for other in rows[1:])
        return
    yield from itertools.pairwise(rows)
    if len(rows) > 2:
        yield rows[0], rows[-1]


def trained(run: Run) -> list[tuple[str, str]]:
    """(stage, what it was made of) in the order of the flow."""
    out: list[tuple[str, str]] = []
    for name, taskset in run.tasks.items():
        splits = Counter(r.split or "no split" for r in taskset.rows)
        told = ", ".join(f"{n} {s}" for s, n in splits.most_common())
        units = len({r.unit for r in taskset.rows})
        out.append((f"tasks ({name})", f"{len(taskset.rows)} tasks of {units} source units: {told}"))
    for name, drops in run.drops.items():
        read, kept = _at(drops, "trajectories", "read"), _at(drops, "trajectories", "kept")
        out.append((f"data ({name})", f"{_at(drops, 'samples', 'written')} samples of {kept} of {read} trajectories"))
    out += [(f"{t.kind} ({t.name})", _training(t)) for t in run.trainings]
    for name, results in named(run).items():
        about, sampling = results.checkpoint, results.sampling
        step = f", step {about['step']}" if about.get("step") else ""
        told = f"{about.get('model', '?')}{step} on "
        told += f"{results.summary.get('tasks', 0)} tasks ({results.taskset.get('split') or 'all'}), "
        told += f"{sampling.get('k', '?')} samples a task, temperature {sampling.get('temperature', '?')}"
        out.append((f"evaluation ({name})", told))
    return out


def _at(table: Mapping[str, Any], *keys: str) -> Any:
    for key in keys:
        table = table.get(key, {}) if isinstance(table, Mapping) else {}
    return "?" if isinstance(table, Mapping) and not table else table


def _training(t: Training) -> str:
    step = max((r["step"] for r in t.metrics), default=0)
    if t.kind == "grpo":
        told = f"{step} steps"
        if t.receipt:
            told += f", {t.receipt.get('groups', 0)} groups, {t.receipt.get('rollouts', 0)} rollouts, "
            told += f"{t.receipt.get('trained_tokens', 0):,} trained tokens"
        done = t.last("done")
        return told + (f"; {done['stopped']}" if done.get("stopped") else "" if done else "; not finished")
    data = t.data or {}
    return f"{step} steps on {data.get('rows', '?')} samples, {data.get('trained_tokens', '?')} trained tokens"


def stops(run: Run, ledgers: Mapping[str, Ledger]) -> dict[str, dict[str, int]]:
    """Folder or checkpoint -> stop reason -> rollouts."""
    out = {r.name: dict(r.summary.get("stops", {})) for r in named(run).values()}
    for folder, ledger in ledgers.items():
        if folder not in run.evaluations and ledger.entries:
            out[folder] = dict(Counter(e.stop or "unknown" for e in ledger.entries))
    return {name: counts for name, counts in out.items() if counts}


def faults(run: Run) -> list[tuple[str, str, int]]:
    """(folder, what, count): by kind of fault and, from the ledgers of faults, by message."""
    out = []
    for results in named(run).values():
        out += [(results.name, kind, n) for kind, n in results.summary.get("faults", {}).items()]
    for t in run.trainings:
        out += [(t.name, kind, n) for kind, n in ((t.receipt or {}).get("faults") or {}).items()]
    for name, file in run.faults.items():
        told = Counter(_message(row) for _, row in read_json_lines(file) if isinstance(row, dict))
        out += [(f"{name}, tries", message, n) for message, n in told.most_common(5)]
    return out


def _message(row: dict[str, Any]) -> str:
    events = [e for e in row.get("events") or [] if isinstance(e, dict) and e.get("message")]
    return str(events[-1]["message"] if events else row.get("message") or row.get("stop") or "unknown")[:200]


def drops(run: Run) -> list[tuple[str, str, str, int]]:
    """(folder, what, reason, count)."""
    out: list[tuple[str, str, str, int]] = []
    for name, table in run.drops.items():
        places = {
            "trajectory": _at(table, "trajectories", "dropped"),
            "sample": _at(table, "samples", "dropped"),
            "message, not trained": _at(table, "messages", "untrained"),
            "line": _at(table, "lines"),
        }
        for what, reasons in places.items():
            if isinstance(reasons, dict):
                out += [(name, what, str(reason), n) for reason, n in reasons.items()]
    for t in run.trainings:
        out += [(t.name, "group or rollout", why, n) for why, n in ((t.receipt or {}).get("drops") or {}).items()]
    return out


def seconds(run: Run) -> dict[str, dict[str, float]]:
    """What the time went to: stages of a recipe, then of each training and collection."""
    out: dict[str, dict[str, float]] = {}
    if run.stages:
        out["stages"] = {r["stage"]: r["seconds"] for r in run.stages if isinstance(r.get("seconds"), int | float)}
    for t in run.trainings:
        if spent := (t.receipt or {}).get("seconds"):
            out[f"{t.name}: rollouts added up, trainer"] = {k: v for k, v in spent.items() if k != "total"}
    for name, summary in run.summaries.items():
        if spent := {k: v for k, v in (summary.get("timings") or {}).items() if k != "total" and v >= 0.05}:
            out[f"{name}: rollouts added up"] = spent
    return {name: {k: v for k, v in table.items() if v} for name, table in out.items() if any(table.values())}


def to_dict(run: Run, ledgers: Mapping[str, Ledger]) -> dict[str, Any]:
    pairs, notes = compared(run)
    return {
        "run": str(run.root),
        "problems": run.problems,
        "trained_on": dict(trained(run)),
        "scores": {folder: r.summary for folder, r in named(run).items()},
        "comparisons": [p.to_dict() for p in pairs],
        "notes": notes,
        "receipts": {t.name: t.receipt for t in run.trainings if t.receipt},
        "advice": run.advice,
        "stops": stops(run, ledgers),
        "faults": [{"where": w, "what": what, "count": n} for w, what, n in faults(run)],
        "drops": [{"where": w, "what": x, "reason": y, "count": n} for w, x, y, n in drops(run)],
        "seconds": seconds(run),
        "rollouts": {name: len(ledger.entries) for name, ledger in ledgers.items()},
    }
