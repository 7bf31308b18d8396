"""`inloop data build | audit | show`."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.table import Table

from inloop.cli.console import closing, emit, out, quieten
from inloop.config import load
from inloop.data.audit import CHECKS, Audit
from inloop.data.page import page
from inloop.data.pipeline import BuildConfig, Built, audit_folder, build_folder
from inloop.data.sample import NAME, pick_rows, read_samples
from inloop.data.show import legend, show
from inloop.data.tokens import load_tokenizer
from inloop.engine.models import resolve_model
from inloop.files import write_atomic

app = typer.Typer(no_args_is_help=True)
SAMPLES = typer.Argument(help="A samples.parquet, or the folder that holds one.")


@app.command()
def build(
    trajectories: list[Path] = typer.Argument(help="Ledgers (trajectories.jsonl) or run folders."),
    to: Path = typer.Option(..., "--out", help="Folder for samples.parquet and drops.json."),
    config: Path | None = typer.Option(None, "--config", help="TOML: model, dialect, max_tokens, [select], [mask]."),
    sets: list[str] = typer.Option([], "--set", help="One value, such as select.min_turns=5. Can be repeated."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Select trajectories, mask them, audit the result, and write it with a reason for every drop."""
    quieten(json)
    built = build_folder(trajectories, to, load(BuildConfig, config, sets))
    if json:
        emit(built.to_dict())
    else:
        _print_built(built)
        _print_audit(built.report)
    closing(f"{to / NAME}, {to / 'drops.json'}", f"inloop data show {to}   or   inloop sft {to} --out RUN")
    raise typer.Exit(0 if built.report.ok else 1)


@app.command()
def audit(
    samples: Path = SAMPLES,
    model: str = typer.Option("", help="Tokenizer to check against; the one that the file names by default."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Check every row: what trains is what the model said, whole, once. Exit code 1 names the rows that fail."""
    quieten(json)
    report = audit_folder(samples, model)
    if json:
        emit(report.to_dict())
    else:
        _print_audit(report)
    closing("nothing", f"inloop sft {samples} --out RUN" if report.ok else f"inloop data show {samples} --rows N")
    raise typer.Exit(0 if report.ok else 1)


@app.command("show")
def show_(
    samples: Path = SAMPLES,
    rows: str = typer.Option("0", help="Rows, such as 0,3-5; or 'all'."),
    html: Path | None = typer.Option(None, help="Write one HTML page instead."),
    logprobs: bool = typer.Option(True, help="Logprob after each trained token of an RL row."),
) -> None:
    """Look at samples with the trained tokens coloured."""
    read, header = read_samples(samples)
    tokenizer = load_tokenizer(resolve_model(header.model))
    picked = pick_rows(read, rows)
    if html:
        write_atomic(html, page(picked, header, tokenizer))
        closing(str(html), "open it in a browser")
        return
    out.print(legend())
    for row, sample in picked:
        for line in show(sample, tokenizer, row=row, logprobs=logprobs):
            out.print(line, highlight=False, soft_wrap=True)


def _print_built(built: Built) -> None:
    drops = built.drops
    table = Table("what", "reason", "count", title="data build", title_justify="left")
    table.add_row("trajectory read", "", str(drops.trajectories))
    for what, reason, count in drops.rows():
        table.add_row(what, reason, str(count))
    table.add_row("trajectory kept", "", str(drops.kept))
    table.add_row("sample written", "", str(drops.samples))
    table.add_row("message trained", "", str(drops.trained))
    for key, values in built.header.counts.items():
        for value, count in values.items():
            table.add_row(f"by {key}", value, str(count))
    out.print(table)


def _print_audit(report: Audit) -> None:
    table = Table("check", "what holds", "result", title="data audit", title_justify="left")
    for check, meaning in CHECKS.items():
        table.add_row(check, meaning, report.state(check))
    out.print(table)
    for finding in report.findings[:20]:
        where = f"row {finding.row} ({finding.sample})" if finding.row >= 0 else "the file"
        out.print(f"{finding.check}: {where}: {finding.detail}", style="red", markup=False, highlight=False)
    if len(report.findings) > 20:
        out.print(f"... and {len(report.findings) - 20} more (--json lists all)", style="red")
    out.print(f"{report.rows} rows, {report.tokens:,} tokens, {report.trained:,} of them trained", highlight=False)
