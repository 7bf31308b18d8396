"""`inloop eval`: score a checkpoint on held-out tasks."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from inloop.cli import console
from inloop.config import load
from inloop.evaluate.export import FORMATS, export
from inloop.evaluate.matrix import Cell, run_matrix
from inloop.evaluate.results import NAME, Results, load_results
from inloop.evaluate.run import EvalSettings, evaluate, rescore
from inloop.harness.config import HarnessConfig
from inloop.trace.store import TrajectoryStore

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    model: str = typer.Argument(..., help="A checkpoint folder, a model folder or name, or an API model."),
    tasks: Path = typer.Option(..., help="Taskset."),
    to: Path = typer.Option(..., "--out", help="Folder of the rollouts and results.json; goes on with what is there."),
    split: str | None = typer.Option(None, help="Split to score on (default: test)."),
    k: int | None = typer.Option(None, "--k", help="Samples a task."),
    limit: int | None = typer.Option(None, help="At most so many tasks."),
    engine: str | None = typer.Option(None, help="embedded, vllm, chat or expert."),
    url: str | None = typer.Option(None, help="Of the server, for vllm and chat."),
    temperature: float | None = typer.Option(None, help="Instead of the harness's; 0 is greedy."),
    seed: int | None = typer.Option(None, help="Base seed of every group."),
    harness: Path | None = typer.Option(None, "--harness", help="TOML of another harness than the checkpoint's."),
    vary: list[str] = typer.Option([], help='harness.sensors=[];["syntax"]: a matrix. Can be repeated.'),
    again: bool = typer.Option(False, "--rescore", help="Judge the stored rollouts again; sample nothing."),
    form: str | None = typer.Option(None, "--export", help=f"Also write the results as {', '.join(FORMATS)}."),
    config: Path | None = typer.Option(None, "--config", help="TOML with these settings."),
    sets: list[str] = typer.Option([], "--set", help="One value, such as engine.slots=16. Can be repeated."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """pass@1 and pass@k with intervals over tasks; faults apart, the ceiling beside the score."""
    console.quieten(json)
    named = {"model": model, "filter.split": split, "k": k, "limit": limit, "engine.kind": engine, "engine.url": url,
             "temperature": temperature, "seed": seed}  # fmt: skip
    given = [f"{key}={dumps(value)}" for key, value in named.items() if value is not None]
    settings = load(EvalSettings, config, [*_harness(harness), *given, *sets])
    if vary:
        _show_matrix(run_matrix(settings, tasks, to, vary), to, json)
        return
    results = rescore(to, load_results(to), tasks) if again else evaluate(settings, tasks, to)
    if form:
        _export(results, to, form)
    _show(results, to, json)


def _harness(path: Path | None) -> list[str]:
    if path is None:
        return []
    values = load(HarnessConfig, path).to_dict()
    return [f"harness.{key}={dumps(value)}" for key, value in values.items()]


def _export(results: Results, to: Path, form: str) -> None:
    if form not in FORMATS:
        raise typer.BadParameter(f"one of {', '.join(FORMATS)}", param_hint="--export")
    suffix = {"csv": "results.csv", "swebench": "predictions.jsonl", "inspect": "inspect.json"}[form]
    export(results, list(TrajectoryStore(to)), form, to / suffix)


def percent(score: dict[str, Any]) -> str:
    if score["mean"] is None:
        return "-"
    return f"{100 * score['mean']:.1f} % [{100 * score['low']:.1f}, {100 * score['high']:.1f}]"


def _show(results: Results, to: Path, json: bool) -> None:
    if json:
        console.emit(asdict(results))
        return
    s = results.summary
    table = Table("", results.name, title=f"{s['tasks_scored']} of {s['tasks']} tasks, {s['samples']} samples")
    for name in [n for n in s if n.startswith("pass@")]:
        table.add_row(name, percent(s[name]))
    table.add_row("hidden tests passed", percent(s["fraction"]))
    if s["ceiling"]["audited"]:
        table.add_row("ceiling", f"{s['ceiling']['solved']} of {s['ceiling']['audited']} oracles pass")
    table.add_row("faults", ", ".join(f"{n} {why}" for why, n in s["faults"].items()) or "none")
    table.add_row("stops", ", ".join(f"{n} {why}" for why, n in s["stops"].items()))
    for name, text in _conduct(s).items():
        table.add_row(name, text)
    for kind, score in s["by_kind"].items():
        table.add_row(f"  {kind}", f"{percent(score)} over {score['tasks']}")
    console.out.print(table)
    console.closing(str(to / NAME), f"inloop compare OTHER {to}")


def _conduct(s: dict[str, Any]) -> dict[str, str]:
    """How the episodes went; what an older results.json does not have is left out."""
    out = {}
    if s.get("valid_calls", {}).get("mean") is not None:
        out["turns with a valid call"] = percent(s["valid_calls"])
    if s.get("recovery", {}).get("episodes"):
        out["passed after a failing test"] = f"{s['recovery']['passed']} of {s['recovery']['episodes']} episodes"
    means = [("turns", "turns_mean"), ("tokens", "sampled_tokens_mean"), ("seconds", "seconds_mean")]
    if mean := [f"{s[key]:.1f} {unit}" for unit, key in means if s.get(key) is not None]:
        out["a rollout, mean"] = ", ".join(mean)
    if "cost" in s:
        out["cost"] = f"{s['cost']['total']:.4f}"
    return out


def _cell(cell: Cell) -> dict[str, Any]:
    against = cell.against.to_dict() if cell.against else None
    return {"name": cell.name, "summary": cell.results.summary, "against_first": against}


def _show_matrix(cells: list[Cell], to: Path, json: bool) -> None:
    if json:
        console.emit([_cell(c) for c in cells])
        return
    table = Table("setting", "pass@1", "against the first")
    for cell in cells:
        verdict = "-"
        if cell.against:
            r = cell.against.comparison
            verdict = f"{r.verdict}: {100 * r.effect:+.1f} [{100 * r.low:+.1f}, {100 * r.high:+.1f}]"
        table.add_row(cell.name, percent(cell.results.summary["pass@1"]), verdict)
    console.out.print(table)
    console.closing(str(to), f"inloop compare {to}/*")
