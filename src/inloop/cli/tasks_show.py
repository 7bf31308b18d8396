"""How tasks, rows and build reports are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from inloop.cli.console import out
from inloop.tasks.cards import why_unaudited
from inloop.tasks.task import Task
from inloop.tasks.taskset import Row

if TYPE_CHECKING:
    from inloop.build.run import Report


def row_json(row: Row) -> dict[str, Any]:
    return asdict(row)


def print_rows(rows: Sequence[Row], limit: int | None) -> None:
    """Plain columns: ten thousand rows have to appear at once."""
    shown = rows[:limit]
    width = max([len(r.id) for r in shown], default=2)
    unit = max([len(r.unit) for r in shown], default=4)
    lines = [f"{'id':<{width}}  {'split':<6} {'kind':<11} {'diff':>5}  {'card':<6} {'unit':<{unit}}"]
    for r in shown:
        difficulty = "" if r.difficulty is None else f"{r.difficulty:.2f}"
        card = "ok" if r.audited else "failed" if r.card else "none"
        lines.append(f"{r.id:<{width}}  {r.split:<6} {r.kind:<11} {difficulty:>5}  {card:<6} {r.unit}")
    print("\n".join(lines))
    more = f", {len(shown)} shown" if len(shown) < len(rows) else ""
    out.print(f"{len(rows)} tasks{more}", highlight=False)


def task_json(task: Task, patch: bool) -> dict[str, Any]:
    data = asdict(task) | {"root": str(task.root), "audited": task.is_audited, "why_unaudited": why_unaudited(task)}
    return data | ({"patch": _patch(task)} if patch else {})


def _patch(task: Task) -> str:
    path = task.solution / "patch.diff"
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def print_task(task: Task, patch: bool) -> None:
    origin = task.provenance
    facts = {
        "id": task.id,
        "kind": f"{origin.builder}, {origin.kind}",
        "source": " ".join(x for x in (origin.repository, origin.commit, origin.licence) if x),
        "unit": origin.unit,
        "split": task.split or "none",
        "verified": f"{task.verify.mode}: {len(task.verify.expected)} hidden tests in {', '.join(task.verify.tests)}",
        "visible": task.test_command,
        "card": why_unaudited(task) or "valid",
        "needs": str(task.meta.get("needs", "") or task.image),
    }
    for name, fact in facts.items():
        if fact:
            out.print(f"[cyan]{name:<9}[/cyan] {escape(fact)}", highlight=False, soft_wrap=True)
    if task.card:
        marks = "  ".join(f"{'yes' if ok else 'NO'} {name}" for name, ok in task.card.checks.items())
        out.print(f"[cyan]{'checks':<9}[/cyan] {marks}", highlight=False, soft_wrap=True)
    out.print()
    out.print(escape(task.instruction), highlight=False)
    if patch:
        out.print(escape(_patch(task)), highlight=False)


def print_stats(found: dict[str, Any]) -> None:
    out.print(f"{found['tasks']} tasks of {found['units']} units, {found['audited']} audited", highlight=False)
    for name in ("kinds", "levels", "splits", "builders", "repositories", "licences", "modes"):
        counts = ", ".join(f"{n} {key}" for key, n in found[name].items())
        out.print(f"[cyan]{name:<13}[/cyan] {escape(counts)}", highlight=False, soft_wrap=True)
    for name, sizes in {**found["sizes"], "difficulty": found["difficulty"]}.items():
        text = "  ".join(f"{key} {value:g}" for key, value in sizes.items())
        out.print(f"[cyan]{name:<13}[/cyan] {text}", highlight=False, soft_wrap=True)


def print_report(report: Report) -> None:
    out.print(
        f"{len(report.kept)} tasks kept of {report.tried} candidates tried; {report.fresh} made now in "
        f"{report.seconds:.0f} s, {report.rate:.1f} tasks a minute",
        highlight=False,
        soft_wrap=True,
    )
    passed = len(report.kept) + report.audit_failures
    if passed:
        kept = len(report.kept) / passed
        out.print(f"ceiling 100% of what was kept; {kept:.1%} of the drafts passed their audit", highlight=False)
    for title, counts in (("dropped", report.drops), ("not a candidate", report.skipped)):
        for reason, count in counts.most_common():
            out.print(f"  {count:>6}  {title}: {reason}", highlight=False, soft_wrap=True)
