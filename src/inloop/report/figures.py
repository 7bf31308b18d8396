"""Plots as inline SVG: text stays text, colours are Okabe and Ito's, nothing is loaded."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from inloop.evaluate.results import Results
from inloop.report.scan import Training
from inloop.trace.show import visible

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#5f5f5f", "#b8a800")
"""Told apart by all common kinds of colour blindness; markers and hatches differ as well."""
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "--", "oo")
STYLE = {
    "font.family": "sans-serif",
    "font.size": 10,
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
    "hatch.color": "white",
    "legend.frameon": False,
}
MOST = 12
"""Kinds and tasks in one plot; what is left out is in the table."""
LABEL = 28

Curve = tuple[str, list[float], list[float]]
"""Name, steps, values."""


@contextmanager
def _figure(height: float, width: float = 5.2) -> Iterator[tuple[Any, Any, list[str]]]:
    """(figure, axes, a list that holds the SVG afterwards)."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes, out = figure.subplots(), list[str]()
        yield figure, axes, out
        out.append(_svg(figure))


_count = 0


def _svg(figure: Any) -> str:
    """The element alone, with ids that no other plot of the page has."""
    global _count
    _count += 1
    raw = io.StringIO()
    figure.savefig(raw, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    text = raw.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'(\bid="|xlink:href="#|url\(#)', rf"\g<1>f{_count}-", text)
    return re.sub(r'\b(width|height)="[^"]*pt" ', "", text, count=2)  # the page decides; the viewBox keeps the shape


def label(text: str, most: int = LABEL) -> str:
    """Hostile names too: one short line without control characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def scores(results: Sequence[Results]) -> str:
    """pass@1 and the largest pass@k of each checkpoint, with 95 % intervals over tasks."""
    ks = [name for name in results[-1].summary if name.startswith("pass@")]
    names = [n for n in (ks[0], ks[-1]) if all(n in r.summary for r in results)]
    names = list(dict.fromkeys(names))
    with _figure(0.9 + 0.28 * len(results) * (1 + len(names))) as (_, axes, out):
        for j, name in enumerate(names):
            places = [i * (len(names) + 1) + j for i in range(len(results))]
            _bars(axes, places, [r.summary[name] for r in results], j, name)
        middle = (len(names) - 1) / 2
        axes.set_yticks([i * (len(names) + 1) + middle for i in range(len(results))], [label(r.name) for r in results])
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of held-out tasks, 95 % interval over tasks")
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        if len(names) > 1:
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(names))
    return out[0]


def _bars(axes: Any, places: Sequence[float], found: Sequence[Mapping[str, Any]], colour: int, name: str) -> None:
    known = [(p, f) for p, f in zip(places, found, strict=True) if f["mean"] is not None]
    axes.barh(
        [p for p, _ in known],
        [100 * f["mean"] for _, f in known],
        height=0.8,
        color=COLOURS[colour],
        hatch=HATCHES[colour],
        label=name,
        xerr=_errors([f for _, f in known]) if known else None,
        error_kw={"ecolor": "#222", "capsize": 3, "lw": 1.2},
    )
    for p, f in zip(places, found, strict=True):
        if f["mean"] is None:
            axes.text(1, p, "no score", va="center", style="italic")


def _errors(found: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    low = [max(0.0, 100 * (f["mean"] - f["low"])) for f in found]
    return [low, [max(0.0, 100 * (f["high"] - f["mean"])) for f in found]]


def kinds(results: Sequence[Results]) -> str:
    """pass@1 by kind of task: one mark a checkpoint."""
    names = list(dict.fromkeys(k for r in results for k in r.summary.get("by_kind", {})))[:MOST]
    with _figure(1.0 + 0.16 * len(names) * (len(results) + 1)) as (_, axes, out):
        for i, result in enumerate(results):
            table = result.summary.get("by_kind", {})
            rows = [(y * (len(results) + 1) + i, table[k]) for y, k in enumerate(names) if k in table]
            rows = [(y, f) for y, f in rows if f["mean"] is not None]
            axes.errorbar(
                [100 * f["mean"] for _, f in rows], [y for y, _ in rows], xerr=_errors([f for _, f in rows]),
                fmt=MARKS[i % 8], color=COLOURS[i % 8], capsize=2, label=label(result.name),
            )  # fmt: skip
        middle = (len(results) - 1) / 2
        axes.set_yticks([y * (len(results) + 1) + middle for y in range(len(names))], [label(k) for k in names])
        axes.set_xlim(-2, 102)
        axes.set_xlabel("pass@1, %")
        axes.invert_yaxis()
        _legend(axes, len(results))
    return out[0]


def stops(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Stop reasons of each set of rollouts, as shares."""
    reasons = sorted({r for c in counts.values() for r in c}, key=lambda r: -sum(c.get(r, 0) for c in counts.values()))
    with _figure(1.1 + 0.42 * len(counts)) as (_, axes, out):
        left = [0.0] * len(counts)
        for i, reason in enumerate(reasons):
            shares = [100 * c.get(reason, 0) / max(sum(c.values()), 1) for c in counts.values()]
            axes.barh(
                range(len(counts)), shares, left=left, height=0.62, color=COLOURS[i % 8], hatch=HATCHES[i % 8],
                edgecolor="white", label=label(reason),
            )  # fmt: skip
            left = [a + b for a, b in zip(left, shares, strict=True)]
        axes.set_yticks(range(len(counts)), [label(n) for n in counts])
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of rollouts")
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        _legend(axes, len(reasons))
    return out[0]


def bars(values: Mapping[str, float], unit: str) -> str:
    """One bar a name, longest first, its number at the end."""
    rows = sorted(values.items(), key=lambda item: -item[1])[:MOST]
    with _figure(0.8 + 0.3 * len(rows)) as (_, axes, out):
        drawn = axes.barh(range(len(rows)), [v for _, v in rows], color=COLOURS[0], height=0.66)
        axes.bar_label(drawn, fmt="%.3g", padding=3)
        axes.set_yticks(range(len(rows)), [label(k) for k, _ in rows])
        axes.set_xlabel(unit)
        axes.margins(x=0.12)
        axes.invert_yaxis()
        axes.grid(False, axis="y")
    return out[0]


PANELS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "sft": (("loss", "held_out_loss"), ("success",), ("learning_rate",)),
    "grpo": (
        ("verifier_reward", "reward", "held_out"),
        ("loss",),
        ("kl", "ratio"),
        ("entropy",),
        ("zero_variance",),
        ("turns",),
        ("sampled_tokens",),
        ("grad_norm",),
    ),
}


def curves(training: Training) -> list[tuple[str, str]]:
    """(what is shown, SVG) of each panel that has data."""
    out = []
    for names in PANELS[training.kind]:
        found = [series(training, n) for n in names]
        if drawn := [c for c in found if len(c[1])]:
            out.append((", ".join(c[0] for c in drawn), _panel(training, drawn)))
    return out


def series(training: Training, name: str) -> Curve:
    rows = [(r["step"], r[name]) for r in training.metrics if isinstance(r.get(name), int | float)]
    return name, [float(s) for s, _ in rows], [float(v) for _, v in rows]


def _panel(training: Training, found: Sequence[Curve]) -> str:
    with _figure(2.5, 4.4) as (_, axes, out):
        for i, (name, steps, values) in enumerate(found):
            mark = MARKS[i % 8] if len(steps) <= 40 else None
            axes.plot(steps, values, color=COLOURS[i % 8], marker=mark, ms=4, lw=1.6, label=name.replace("_", " "))
        if found[0][0] == "success":
            low, high = series(training, "success_low"), series(training, "success_high")
            if low[1] == high[1]:
                axes.fill_between(low[1], low[2], high[2], color=COLOURS[0], alpha=0.2)
        axes.set_xlabel("step")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.margins(y=0.1)
        if len(found) > 1:
            _legend(axes, len(found))
        else:
            axes.set_title(found[0][0].replace("_", " "), fontsize=10)
    return out[0]


def _legend(axes: Any, count: int) -> None:
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(count, 3), fontsize=9)
