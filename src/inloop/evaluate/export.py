"""Results in forms that others open: CSV, SWE-bench predictions, an Inspect log."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inloop.evaluate.results import Results
from inloop.files import write_atomic
from inloop.trace.trajectory import Node, Trajectory

FORMATS = ("csv", "swebench", "inspect")


def export(results: Results, trajectories: Sequence[Trajectory], kind: str, out: Path) -> Path:
    """Write `results` as `kind` to the file `out`."""
    makers = {"csv": to_csv, "swebench": to_swebench, "inspect": to_inspect}
    write_atomic(out, makers[kind](results, trajectories))
    return out


def to_csv(results: Results, trajectories: Sequence[Trajectory]) -> str:
    """One line a rollout; a fault has an empty reward."""
    out = io.StringIO()
    columns = (
        "task",
        "rollout",
        "kind",
        "reward",
        "fraction",
        "verdict",
        "stop",
        "turns",
        "sampled_tokens",
        "seconds",
    )
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    kinds = {r.id: r.kind for r in results.rows}
    for t in trajectories:
        writer.writerow([t.task_id, t.id, kinds.get(t.task_id or "", ""), *_csv_outcome(t)])
    return out.getvalue()


def _csv_outcome(t: Trajectory) -> list[Any]:
    value, fraction, verdict = (t.reward.value, t.reward.fraction, t.reward.verdict.value) if t.reward else (None,) * 3
    counts = [t.counts.get("turns"), t.counts.get("sampled_tokens"), t.timings.get("total")]
    return [_blank(v) for v in (value, fraction, verdict, t.stop.value if t.stop else None, *counts)]


def _blank(value: Any) -> Any:
    return "" if value is None else value


def to_swebench(results: Results, trajectories: Sequence[Trajectory]) -> str:
    """`instance_id`, `model_name_or_path`, `model_patch`: the first sample of each task, as the harness wants one."""
    first: dict[str, Trajectory] = {}
    for t in trajectories:
        if t.task_id and t.stop and t.stop.trains:
            first.setdefault(t.task_id, t)
    rows = (
        {"instance_id": task, "model_name_or_path": results.name, "model_patch": t.diff or ""}
        for task, t in sorted(first.items())
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def to_inspect(results: Results, trajectories: Sequence[Trajectory]) -> str:
    """An Inspect eval log (JSON, version 2), which `inspect view` opens."""
    now = datetime.now(UTC).isoformat()
    mean = results.summary["pass@1"]["mean"]
    log = {
        "version": 2,
        "status": "success",
        "eval": _inspect_spec(results, now, sorted({t.task_id or "" for t in trajectories})),
        "plan": {"name": "inloop", "steps": [], "config": {}},
        "results": {
            "total_samples": len(trajectories),
            "completed_samples": sum(bool(t.stop and t.stop.trains) for t in trajectories),
            "scores": [
                {
                    "name": "hidden_tests",
                    "scorer": "hidden_tests",
                    "params": {},
                    "metrics": {"pass@1": {"name": "pass@1", "value": 0 if mean is None else mean, "params": {}}},
                }
            ],
        },
        "stats": {"started_at": now, "completed_at": now, "model_usage": {}},
        "samples": list(_inspect_samples(trajectories)),
    }
    return json.dumps(log, ensure_ascii=False)


def _inspect_spec(results: Results, now: str, ids: list[str]) -> dict[str, Any]:
    return {
        "run_id": results.name,
        "created": now,
        "task": Path(str(results.taskset.get("path", "tasks"))).name or "tasks",
        "task_id": str(results.taskset.get("hash", "")),
        "task_version": 0,
        "dataset": {"name": str(results.taskset.get("path", "")), "samples": len(ids), "sample_ids": ids},
        "model": f"inloop/{results.name}",
        "model_args": {},
        "config": {"epochs": int(results.sampling.get("k", 1))},
        "metadata": {"harness": results.harness, "sampling": results.sampling, "summary": results.summary},
        "packages": {},
        "task_attribs": {},
        "task_args": {},
    }


def _inspect_samples(trajectories: Iterable[Trajectory]) -> Iterable[dict[str, Any]]:
    epochs: dict[str, int] = {}
    for t in trajectories:
        task = t.task_id or "?"
        epochs[task] = epochs.get(task, 0) + 1
        path = next(iter(t.paths()), [])
        value = t.reward.value if t.reward else None
        yield {
            "id": task,
            "epoch": epochs[task],
            "input": next((n.message.text for n in path if n.message.role == "user"), ""),
            "target": "",
            "messages": [_inspect_message(n) for n in path],
            "output": {"model": t.model or "", "choices": []},
            "scores": {
                "hidden_tests": {
                    "value": "C" if value is not None and value >= 1 else "N" if value is None else "I",
                    "explanation": "; ".join(t.reward.evidence) if t.reward else "no reward",
                }
            },
            "metadata": {"stop": t.stop.value if t.stop else None, "rollout": t.id, "diff": t.diff},
            "store": {},
            "events": [],
            "model_usage": {},
            "attachments": {},
        }


def _inspect_message(node: Node) -> dict[str, Any]:
    message = node.message
    out: dict[str, Any] = {"id": node.id, "role": message.role, "content": message.text}
    if message.role == "assistant":
        out["source"] = "generate" if node.sampled else "input"
        calls = [c for c in message.calls if c.arguments is not None]
        if calls:
            out["tool_calls"] = [
                {"id": c.id, "function": c.name, "arguments": c.arguments, "type": "function"} for c in calls
            ]
    if message.role == "tool":
        out["tool_call_id"] = message.call_id or ""
    return out
