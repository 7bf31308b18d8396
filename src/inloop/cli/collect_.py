"""`inloop collect`."""

from __future__ import annotations

from json import dumps
from pathlib import Path

import typer

from inloop.cli.console import closing, emit, out, quieten
from inloop.rollout.job import run_collect, settings_from

app = typer.Typer(rich_markup_mode=None)


@app.command()
def main(
    tasks: Path = typer.Option(..., "--tasks", help="A taskset, or one task folder."),
    to: Path = typer.Option(..., "--out", help="Run folder; the same command goes on with what is in it."),
    engine: str | None = typer.Option(None, help="embedded, vllm, chat, scripted or expert."),
    model: str | None = typer.Option(None, help="A model's name or folder; for scripted, the file of replies."),
    url: str | None = typer.Option(None, help="Of the server, for vllm and chat."),
    agent: str | None = typer.Option(None, help="An agent from elsewhere, unmodified: mini-swe-agent."),
    k: int | None = typer.Option(None, "--k", help="Rollouts a task."),
    split: str | None = typer.Option(None, help="Only tasks of this split."),
    limit: int | None = typer.Option(None, help="At most so many tasks."),
    temperature: float | None = typer.Option(None, help="0 is greedy."),
    seed: int | None = typer.Option(None, help="Base seed of every group."),
    concurrency: int | None = typer.Option(None, help="Rollouts at once."),
    minutes: float | None = typer.Option(None, help="Stop after so long; running rollouts are cancelled."),
    processes: int | None = typer.Option(None, help="Spread over so many processes of this machine."),
    ray: str | None = typer.Option(None, help="Spread over a Ray cluster: its address, or 'local'."),
    sandbox: str | None = typer.Option(None, help="bubblewrap, docker or unisolated-process."),
    harness: Path | None = typer.Option(
        None, "--harness", help="TOML of the harness: dialect, tools, guides, budgets."
    ),
    config: Path | None = typer.Option(None, "--config", help="TOML with the tables engine, harness, plan, filter."),
    sets: list[str] = typer.Option([], "--set", help="One value, such as harness.max_turns=12. Can be repeated."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Run rollouts and keep them, with the tokens exactly as they were sampled."""
    quieten(json)
    named = {
        "engine.kind": engine, "engine.model": model, "engine.url": url, "plan.k": k, "filter.split": split,
        "limit": limit, "harness.temperature": temperature, "plan.seed": seed, "plan.concurrency": concurrency,
        "plan.max_seconds": None if minutes is None else minutes * 60, "processes": processes, "ray": ray,
        "sandbox": sandbox, "agent": agent,
    }  # fmt: skip
    given = [f"{key}={dumps(value)}" for key, value in named.items() if value is not None]
    summary = run_collect(tasks, to, settings_from(config, harness, [*given, *sets]))
    if json:
        emit(summary.to_dict())
    else:
        for line in summary.lines():
            out.print(line, highlight=False, soft_wrap=True)
    closing(f"{to / 'trajectories.jsonl'}", f"inloop traces show {to}")
