"""Samples as one HTML page: nothing is loaded, nothing runs, and whatever a sample says stays text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from inloop.data.pieces import Piece, aside, headline, pieces
from inloop.data.sample import Header, Sample
from inloop.trace.show import visible

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Samples</title>
<style>
:root { color-scheme: light dark; --on: #b7ebc0; --bad: #f5b5b0; --off: #f3e3ae; --ink: #14191f; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
pre { font: 13px/1.6 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0 1rem; }
summary { cursor: pointer; font-weight: 600; }
small { opacity: .75; }
.t, .n, .u { color: var(--ink); border-radius: 2px; }
.t { background: var(--on); } .n { background: var(--bad); } .u { background: var(--off); } .c { opacity: .65; }
.t:hover, .n:hover { outline: 1px solid currentColor; }
</style></head><body>
<h1>Samples</h1>
<p><span class="t">trained</span> <span class="n">trained, negative advantage</span>
<span class="u">sampled, not trained</span> <span class="c">context</span>.
Point at a token for its id, weight, logprob and advantage.</p>
"""


def page(samples: Iterable[tuple[int, Sample]], header: Header, tokenizer: Any) -> str:
    """The whole page; `samples` come with their row numbers."""
    about = f"model {header.model} · dialect {header.dialect} · tokenizer {header.tokenizer}"
    body = [f"<p><small>{_safe(about)}</small></p>"]
    body += [_sample(row, sample, tokenizer) for row, sample in samples]
    return _HEAD + "\n".join(body) + "\n</body></html>\n"


def _sample(row: int, sample: Sample, tokenizer: Any) -> str:
    out = [
        f"<details open><summary>row {row} · {_safe(sample.id)}</summary>",
        f"<p><small>{_safe(headline(sample))}</small></p>",
    ]
    for span in sample.spans:
        tokens = "".join(_token(piece, sample.advantage) for piece in pieces(sample, span, tokenizer))
        out.append(f"<small>{_safe(aside(span))}</small><pre>{tokens}</pre>")
    return "\n".join([*out, "</details>"])


def _token(piece: Piece, advantage: float | None) -> str:
    if not piece.trained and not piece.sampled:
        return f'<span class="c">{_safe(piece.text)}</span>'
    negative = advantage is not None and advantage < 0
    kind = ("n" if negative else "t") if piece.trained else "u"
    facts = ["id " + " ".join(map(str, piece.ids))]
    facts += [f"weight {piece.weight:g}"] if piece.weight != 1.0 else []
    facts += [f"logprob {piece.logprob:.4f}"] if piece.logprob is not None else []
    facts += [f"advantage {advantage:+.4f}"] if advantage is not None and piece.trained else []
    return f'<span class="{kind}" title="{_safe(", ".join(facts))}">{_safe(piece.text)}</span>'


def _safe(text: str) -> str:
    return escape(visible(text))
