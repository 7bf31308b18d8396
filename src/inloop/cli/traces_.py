"""`inloop traces`: look at, check, import, redact and export trajectories."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from inloop.cli import console
from inloop.errors import DataError
from inloop.trace import open as traces
from inloop.trace.check import check_all
from inloop.trace.export import FORMATS, export
from inloop.trace.importing import import_traces
from inloop.trace.redact.apply import Redactor
from inloop.trace.redact.find import load_salt
from inloop.trace.show import Look, render, visible
from inloop.trace.skipped import tally

app = typer.Typer(no_args_is_help=True, add_completion=False)

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Where = Annotated[Path, typer.Argument(help="A run folder, a trajectories.jsonl, or any trace that can be imported.")]
Words = Annotated[Path | None, typer.Option("--tokenizer", help="Folder of the tokenizer that the ids belong to.")]
Salt = Annotated[Path | None, typer.Option("--salt", help="File that keeps placeholders stable; default: your own.")]


@app.command("import")
def import_(
    paths: Annotated[list[str], typer.Argument(help="Files, folders or globs, of any known format.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for trajectories.jsonl and what was left out.")],
    redact: Annotated[bool, typer.Option("--redact/--no-redact", help="Cut secrets and names out first.")] = True,
    images: Annotated[
        bool, typer.Option("--images", help="Write images to OUT/images (they are not redacted).")
    ] = False,
    tokenizer: Words = None,
    salt: Salt = None,
    json_output: Json = False,
) -> None:
    """Sessions and data sets of other tools -> a ledger."""
    console.quieten(json_output)
    redactor = Redactor(load_salt(salt), traces.load_tokenizer(tokenizer)) if redact else None
    summary = import_traces(list(paths), out, redactor=redactor, images=images)
    if json_output:
        console.emit(summary.to_dict())
        return
    _rows(
        {
            "sources": f"{summary.sources} ({summary.bytes / 1e6:.1f} MB)",
            "records": f"{summary.records}: {summary.records_used} used, {sum(summary.metadata.values())} metadata",
            "turns": f"{summary.turns} sampled, {summary.copied_turns} read before",
            "formats": _listed(summary.formats),
            "cut": _listed(summary.cuts) if redact else "nothing: redaction was off",
            "skipped": _listed(summary.skipped),
        }
    )
    console.closing(f"{summary.trajectories} trajectories, {out}/trajectories.jsonl", f"inloop traces show {out}")


@app.command()
def show(
    path: Where,
    name: Annotated[str | None, typer.Option("--id", help="Which one.")] = None,
    row: Annotated[int, typer.Option("--row", min=1, help="Which one, by its place.")] = 1,
    lines: Annotated[int, typer.Option("--lines", min=2, help="Lines shown of each text.")] = 40,
    json_output: Json = False,
) -> None:
    """One trajectory in the terminal; its text is shown, never interpreted."""
    console.quieten(json_output)
    found, _ = traces.open_traces(path)
    trajectory = traces.pick(found, name=name, row=row)
    if json_output:
        console.emit(trajectory.to_dict())
    else:
        console.out.print(render(trajectory, Look(line=max(40, console.out.width - 12), lines=lines)))


@app.command()
def stats(path: Where, json_output: Json = False) -> None:
    """How much there is, of what, and what was skipped."""
    console.quieten(json_output)
    found, skipped = traces.open_traces(path)
    result: dict[str, Any] = traces.stats(found)
    result["skipped"] = tally(skipped)
    if json_output:
        console.emit(result)
        return
    _rows({k: _listed(v) if isinstance(v, dict) else v for k, v in result.items()})


@app.command()
def check(path: Where, tokenizer: Words = None, json_output: Json = False) -> None:
    """The invariants; exit 1 when one is broken. Changes nothing."""
    console.quieten(json_output)
    found, skipped = traces.open_traces(path)
    findings = list(check_all(found, traces.load_tokenizer(tokenizer)))
    errors = sum(f.level == "error" for f in findings)
    if json_output:
        names = ("trajectory", "row", "node", "code", "level", "message")
        listed = [{k: getattr(f, k) for k in names} for f in findings]
        console.emit({"errors": errors, "notes": len(findings) - errors, "findings": listed, "skipped": tally(skipped)})
    else:
        for f in islice(findings, 200):
            text = f"{f.level:<5} {f.code:<16} row {f.row} {f.trajectory} {f.node}: {f.message}"
            console.out.print(visible(text), markup=False, highlight=False, soft_wrap=True)
        if len(findings) > 200:
            console.out.print(f"... {len(findings) - 200} more; --json lists all")
        console.out.print(f"{errors} errors, {len(findings) - errors} notes, {len(skipped)} lines skipped")
    raise typer.Exit(1 if errors else 0)


@app.command()
def redact(
    path: Where,
    out: Annotated[Path, typer.Option("--out", help="Folder for the redacted ledger and its receipt.")],
    tokenizer: Words = None,
    salt: Salt = None,
    json_output: Json = False,
) -> None:
    """A ledger without secrets and names; token ids outside the cuts stay as they are."""
    console.quieten(json_output)
    ledger = path / "trajectories.jsonl" if path.is_dir() else path
    if ledger.resolve() == (out / "trajectories.jsonl").resolve():
        raise DataError("--out is the folder of the ledger itself", fix="choose another folder")
    redactor = Redactor(load_salt(salt), traces.load_tokenizer(tokenizer))
    summary = import_traces([ledger], out, redactor=redactor)
    if json_output:
        console.emit(summary.to_dict())
        return
    _rows({"cut": _listed(summary.cuts), "ids dropped": summary.nodes_without_ids, "skipped": _listed(summary.skipped)})
    console.closing(f"{summary.trajectories} trajectories, {out}/trajectories.jsonl", f"inloop traces check {out}")


@app.command("export")
def export_(
    path: Where,
    target: Annotated[str, typer.Option("--format", help=f"{', '.join(FORMATS)}.")],
    out: Annotated[Path, typer.Option("--out", help="A file for chat, a folder for the others.")],
    json_output: Json = False,
) -> None:
    """Write another tool's format, and name what it can't hold."""
    console.quieten(json_output)
    found, skipped = traces.open_traces(path)
    done = export(found, target, out)
    if json_output:
        console.emit({"documents": done.documents, "files": done.files, "lost": done.lost, "skipped": tally(skipped)})
        return
    _rows({"documents": done.documents, "lost": _listed(done.lost), "skipped": _listed(tally(skipped))})
    console.closing(f"{done.files} files of {done.trajectories} trajectories, {out}")


def _rows(rows: dict[str, Any]) -> None:
    for key, value in rows.items():
        console.out.print(f"{key:<15} {visible(str(value))}", markup=False, highlight=False, soft_wrap=True)


def _listed(counts: dict[str, int]) -> str:
    shown = ", ".join(f"{name} {n}" for name, n in list(counts.items())[:12])
    return (shown or "nothing") + (f", and {len(counts) - 12} more" if len(counts) > 12 else "")
