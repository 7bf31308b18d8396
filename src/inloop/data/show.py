"""Samples in the terminal, trained tokens coloured. Their text is hostile: nothing in it is interpreted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.rule import Rule
from rich.text import Text

from inloop.data.pieces import Piece, aside, headline, pieces
from inloop.data.sample import Sample
from inloop.trace.show import visible

TRAINED = "black on green"
GOOD, BAD = "black on green", "black on red"
UNTRAINED = "yellow"
CONTEXT = "dim"


def legend() -> Text:
    out = Text()
    for style, words in ((TRAINED, "trained"), (UNTRAINED, "sampled, not trained"), (CONTEXT, "context")):
        out.append(f" {words} ", style=style)
        out.append(" ")
    return out.append("RL rows: red is a negative advantage; a small number is a token's logprob", style="dim")


def show(sample: Sample, tokenizer: Any, *, row: int, logprobs: bool = True) -> Iterator[RenderableType]:
    """One sample: a headline, then its messages."""
    yield Rule(Text(f"row {row} · {visible(sample.id)}"), align="left")
    yield Text(visible(headline(sample)), style="bold")
    for span in sample.spans:
        yield Text(f"[{visible(aside(span))}]", style="cyan")
        line = Text()
        for piece in pieces(sample, span, tokenizer):
            text = visible(piece.text)
            if piece.sampled:  # a line end has no colour of its own
                text = text.replace("\n", "↵\n")
            line.append(text, style=_style(piece, sample.advantage))
            if logprobs and piece.trained and piece.logprob is not None:
                line.append(f"{piece.logprob:.2f}", style="dim italic")
            if piece.trained and piece.weight != 1.0:
                line.append(f"x{piece.weight:g}", style="dim italic")
        yield line


def _style(piece: Piece, advantage: float | None) -> str:
    if piece.trained:
        return TRAINED if advantage is None else (BAD if advantage < 0 else GOOD)
    return UNTRAINED if piece.sampled else CONTEXT
