"""The views show which token trains, and nothing that a sample says is interpreted."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from data_stage.episodes import episode
from rich.console import Console

from inloop.data.builder import Builder
from inloop.data.mask import RL
from inloop.data.page import page
from inloop.data.pieces import pieces
from inloop.data.sample import MASKED, Header, Sample
from inloop.data.show import show
from inloop.harness.text import TextDialect
from inloop.types import message

HOSTILE = "<script>alert(1)</script> [bold red]x[/] \x1b[31mred\x1b]0;title\x07 é 你好 \u202eright"


@pytest.fixture
def hostile(tokenizer: Any, dialect: TextDialect) -> Sample:
    trajectory = episode("<img src=x onerror=alert(1)>")
    trajectory.nodes[3].message = message("tool", HOSTILE, call_id="read-1")
    builder = Builder(tokenizer=tokenizer, stop_ids=dialect.stop_token_ids, encoder=lambda t: dialect)
    (sample,) = builder.take(trajectory)
    return sample


@pytest.fixture
def rl(captured: Callable[..., Any], tokenizer: Any, dialect: TextDialect) -> Sample:
    builder = Builder(tokenizer=tokenizer, stop_ids=dialect.stop_token_ids, config=RL)
    (sample,) = builder.take(captured(), advantage=-0.75)
    return sample


def test_pieces_are_the_tokens(hostile: Sample, tokenizer: Any) -> None:
    for span in hostile.spans:
        parts = list(pieces(hostile, span, tokenizer))
        assert [i for p in parts for i in p.ids] == hostile.input_ids[span.start : span.end]
        assert "".join(p.text for p in parts) == tokenizer.decode(hostile.input_ids[span.start : span.end])
        assert all(p.trained == span.trained for p in parts)
    assert "\ufffd" not in "".join(p.text for p in pieces(hostile, hostile.spans[3], tokenizer))


def test_a_character_is_not_torn_where_only_a_part_of_it_trains(hostile: Sample, tokenizer: Any) -> None:
    span = next(s for s in hostile.spans if "你" in tokenizer.decode(hostile.input_ids[s.start : s.end]))
    at = next(
        i
        for i in range(span.start, span.end)
        if tokenizer.decode(hostile.input_ids[span.start : i + 1]).endswith("\ufffd")
    )
    hostile.labels[at] = hostile.input_ids[at]
    found = [p for p in pieces(hostile, span, tokenizer) if p.trained]
    assert [p.ids for p in found] == [(hostile.input_ids[at],)]


def terminal(sample: Sample, tokenizer: Any, *, colour: bool) -> str:
    console = Console(width=100, force_terminal=colour, color_system="standard" if colour else None)
    with console.capture() as out:
        for line in show(sample, tokenizer, row=0):
            console.print(line, highlight=False, soft_wrap=True)
    return out.get()


def test_terminal_colours_what_trains(hostile: Sample, tokenizer: Any) -> None:
    text = terminal(hostile, tokenizer, colour=True)
    green = "".join(re.findall(r"\x1b\[30;42m(.*?)\x1b\[0m", text, re.S)).replace("↵", "")
    trained = tokenizer.decode([x for x in hostile.labels if x != MASKED])
    assert green.replace("\n", "") == trained.replace("\n", "")


def test_terminal_takes_nothing_at_its_word(hostile: Sample, tokenizer: Any) -> None:
    text = terminal(hostile, tokenizer, colour=False)
    assert "[bold red]x[/]" in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)


def test_rl_rows_show_advantage_and_logprob(rl: Sample, tokenizer: Any) -> None:
    text = terminal(rl, tokenizer, colour=True)
    assert "advantage -0.750" in text and "-0.25" in text and "\x1b[30;41m" in text and "\x1b[30;42m" not in text
    html = page([(0, rl)], Header(), tokenizer)
    assert html.count('class="n"') == 1 + rl.trained
    assert 'logprob -0.2500, advantage -0.7500"' in html


class Reader(HTMLParser):
    """Collects tags, attributes and text as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def test_page_is_one_file_of_text(hostile: Sample, tokenizer: Any) -> None:
    hostile.meta["source"] = '"><script>alert(2)</script>'
    header = dataclasses.replace(Header(), model="</small><script>alert(3)</script>")
    reader = Reader()
    reader.feed(page([(7, hostile)], header, tokenizer))
    names = {tag for tag, _ in reader.tags}
    assert names <= {"html", "head", "meta", "title", "style", "body", "h1", "p", "small", "span", "pre"} | {
        "details",
        "summary",
    }
    assert not any(key in attrs for _, attrs in reader.tags for key in ("src", "href", "onerror", "onclick"))
    policy = next(a for t, a in reader.tags if t == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in str(policy["content"])
    said = "".join(reader.said)
    assert "<script>alert(1)</script>" in said and "row 7" in said and "你好" in said
    assert sum(1 for _, a in reader.tags if a.get("class") == "t") == 1 + hostile.trained
