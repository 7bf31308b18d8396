"""`inloop report`: a run folder -> one self-contained `report.html`; whatever a rollout says stays text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from inloop import __version__
from inloop.evaluate.results import Results
from inloop.files import write_atomic
from inloop.report import facts, figures, telling
from inloop.report.facts import Compared
from inloop.report.ledger import Ledger
from inloop.report.scan import Run, scan
from inloop.trace.show import Look, clip, visible
from inloop.trace.trajectory import Trajectory
from inloop.types import Call, Part, Text, Thinking

NAME = "report.html"
LOOK = Look(line=240, lines=30)
DIFF = Look(line=240, lines=120)
CONFIG = Look(line=240, lines=400)


def write_report(run_dir: Path, out: Path | None = None) -> Path:
    """Report on what `run_dir` holds so far; also of a run that still goes on or was stopped.

    Raises DataError when there is nothing to report on."""
    run, ledgers = opened(run_dir)
    target = out or run_dir / NAME
    write_atomic(target, render(run, ledgers))
    return target


def report_facts(run_dir: Path) -> dict[str, Any]:
    """The figures of the report, without the page."""
    return facts.to_dict(*opened(run_dir))


def opened(run_dir: Path) -> tuple[Run, dict[str, Ledger]]:
    run = scan(run_dir)
    kinds = run.kinds()
    ledgers = {name: Ledger(path, kinds) for name, path in run.ledgers.items()}
    for name, ledger in ledgers.items():
        ledger.refresh()
        if ledger.skipped:
            run.problems.append(f"{name}: {ledger.skipped} lines of the ledger are no rollout or repeat an id")
    return run, ledgers


def render(run: Run, ledgers: dict[str, Ledger]) -> str:
    from jinja2 import ChainableUndefined, Environment

    text = (files("inloop.report") / "static" / "report.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=ChainableUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"percent": percent, "points": points, "shown": shown}
    return environment.from_string(text).render(context(run, ledgers))


def context(run: Run, ledgers: dict[str, Ledger]) -> dict[str, Any]:
    """All that the template reads."""
    results = list(facts.named(run).values())
    pairs, notes = facts.compared(run)
    found = telling.choose(run, ledgers, _ends(pairs))
    plots = _figures(run, results, ledgers)
    return {
        "name": run.name,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": __version__,
        "problems": run.problems[:20],
        "pairs": pairs,
        "notes": notes,
        "trained": facts.trained(run),
        "results": results,
        "suspect": [t for t in run.trainings if t.suspect],
        "ks": _ks(results),
        "trainings": [(t, figures.curves(t)) for t in run.trainings],
        "advice": [a["sentence"] for a in run.advice.values() if isinstance(a.get("sentence"), str)],
        "figures": plots,
        "drops": facts.drops(run),
        "faults": facts.faults(run),
        "seconds": {name: (table, figures.bars(table, "seconds")) for name, table in facts.seconds(run).items()},
        "telling": [card(t) for t in found],
        "configs": {name: clip(visible(text), CONFIG) for name, text in run.configs.items()},
        "held": sum(len(ledger.entries) for ledger in ledgers.values()),
    }


def _ends(pairs: list[Compared]) -> telling.Ends | None:
    return next(((p.a, p.b, p.pair) for p in pairs if p.headline), None)


def _ks(results: list[Results]) -> list[str]:
    return list(dict.fromkeys(n for r in results for n in r.summary if n.startswith("pass@")))


def _figures(run: Run, results: list[Results], ledgers: Mapping[str, Ledger]) -> dict[str, str]:
    """Name -> SVG, '' where there is nothing to plot."""
    scored = [r for r in results if "pass@1" in r.summary]
    stops = facts.stops(run, ledgers)
    kinds = [r for r in scored if len(r.summary.get("by_kind", {})) > 1]
    return {
        "scores": _plot(run, lambda: figures.scores(scored)) if scored else "",
        "kinds": _plot(run, lambda: figures.kinds(kinds)) if kinds else "",
        "stops": _plot(run, lambda: figures.stops(stops)) if stops else "",
    }


def _plot(run: Run, draw: Callable[[], str]) -> str:
    try:
        return draw()
    except (KeyError, TypeError) as error:  # results of another version: the rest of the page stands
        run.problems.append(f"a plot could not be drawn: {error}")
        return ""


def percent(score: Mapping[str, Any] | None) -> str:
    if not score or score.get("mean") is None:
        return "no score"
    return f"{100 * score['mean']:.1f} % [{100 * score['low']:.1f}, {100 * score['high']:.1f}]"


def points(value: float) -> str:
    return f"{100 * value:+.1f}"


def shown(value: Any) -> str:
    """Hostile text: control and direction characters become visible, long lines are cut."""
    return clip(visible(str(value)), LOOK)


def card(found: telling.Telling) -> dict[str, Any]:
    """One telling rollout: what was asked, each turn, the diff, the hidden tests."""
    t = found.trajectory
    reward = t.reward
    return {
        "why": found.why,
        "note": found.note,
        "folder": found.folder,
        "id": shown(t.id),
        "task": shown(t.task_id or ""),
        "verdict": reward.verdict.value if reward else "not scored",
        "value": "none" if reward is None or reward.value is None else f"{reward.value:g}",
        "stop": t.stop.value if t.stop else "unknown",
        "counts": ", ".join(f"{k} {v:g}" for k, v in t.counts.items() if v),
        "turns": list(_turns(t)),
        "diff": clip(visible(t.diff or ""), DIFF),
        "tests": [(shown(o.id), o.status, shown(o.detail)) for o in reward.tests[:40]] if reward else [],
        "evidence": [shown(e) for e in reward.evidence] if reward else [],
        "events": [shown(_event(e)) for e in t.events if e.get("kind") != "guide"][:20],
    }


def _event(event: dict[str, Any]) -> str:
    rest = ", ".join(f"{k} {v}" for k, v in event.items() if k != "kind")
    return f"{event.get('kind', 'event')}: {rest}"


def _turns(t: Trajectory) -> Iterator[tuple[str, bool, list[str]]]:
    try:
        nodes = list({node.id: node for path in t.paths() for node in path}.values())
    except KeyError:  # a message names a parent that is not there: in the order of the file, then
        nodes = t.nodes
    for node in nodes:
        yield node.message.role, node.sampled, [clip(visible(said(p)), LOOK) for p in node.message.parts]


def said(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Thinking):
        return "(thought, not recorded)" if part.hidden else part.text
    if isinstance(part, Call):
        return part.raw if part.embedded else f"{part.name}({part.raw or part.arguments})"
    return f"[image {part.media_type} {part.sha256[:12]}]"
