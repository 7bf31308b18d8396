"""Planted secrets: none on disk, placeholders untrained and stable, ids of untouched spans as they were sampled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planted import SAFE, Planted, planted
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from inloop.trace.check import check
from inloop.trace.importing import import_traces
from inloop.trace.redact.apply import Redactor
from inloop.trace.redact.find import PLACEHOLDER, load_salt
from inloop.trace.store import TrajectoryStore, read_trajectories
from inloop.trace.trajectory import Node, Trajectory, plain
from inloop.types import Call, Message, Text, Thinking, message

SALT = b"salt for the tests, 32 bytes long"


class Words:
    """A byte-level BPE tokenizer behind the interface that transformers has."""

    def __init__(self) -> None:
        raw = Tokenizer(models.BPE())
        raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        raw.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=600, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
        )
        raw.train_from_iterator([p.said for p in planted(99)] + SAFE * 3, trainer)
        self.raw = raw

    def encode(self, text: str, **_: Any) -> list[int]:
        return list(self.raw.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: list[int], **_: Any) -> str:
        return str(self.raw.decode(ids, skip_special_tokens=False))


WORDS = Words()


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return Redactor(SALT)


def pieces(secret: str) -> list[str]:
    """A key of several lines must not survive by the line."""
    return [row for row in secret.split("\n") if "-----" not in row]


def test_there_are_forty_of_twenty_kinds() -> None:
    assert len(planted()) == 40 and len({p.kind for p in planted()}) == 20
    assert len({p.secret for p in planted()}) == 40


@pytest.mark.parametrize("seed", range(5))
def test_each_kind_is_found(redactor: Redactor, seed: int) -> None:
    for item in planted(seed):
        out = redactor.text(item.said)
        assert not [row for row in pieces(item.secret) if row in out], item
        assert PLACEHOLDER.search(out), item
        assert redactor.text(out) == out, "redacting twice changes nothing"


@pytest.mark.parametrize("text", SAFE)
def test_ordinary_text_stays(redactor: Redactor, text: str) -> None:
    assert redactor.text(text) == text


def test_placeholders_are_stable_and_need_the_salt(redactor: Redactor, tmp_path: Path) -> None:
    said = "mail jo.doe@corp.io or jo.doe@corp.io, not ann.lee@corp.io"
    out = redactor.text(said)
    first, second, other = [m[0] for m in PLACEHOLDER.finditer(out)]
    assert first == second != other
    assert Redactor(SALT).text(said) == out != Redactor(b"another salt of 32 bytes length!").text(said)
    assert load_salt(tmp_path / "s") == load_salt(tmp_path / "s") != load_salt(tmp_path / "t")
    assert (tmp_path / "s").stat().st_mode & 0o77 == 0


def spread(item: Planted) -> Trajectory:
    """One secret in every place that a trajectory has for text."""
    said, secret = item.said, item.secret
    call = Call(id="c", name="bash", arguments={"command": said}, raw=json.dumps({"command": said}))
    inside = Call(id="d", name="bash", arguments={"command": said}, raw=f"```bash\n{said}\n```", embedded=True)
    turn = Message(role="assistant", parts=(Thinking(text=f"so {said}"), Text(text=f"I see {said} here"), call, inside))
    ids = [WORDS.encode(f"<|x|>so {said} I see {said} here" + json.dumps({"command": said}) + inside.raw + "<|end|>")]
    return Trajectory(
        id=f"t-{planted().index(item)}",
        nodes=[
            Node(id="s", parent=None, message=message("system", f"system {said}")),
            Node(id="u", parent="s", message=message("user", said), source=(said, 3)),
            Node(id="a", parent="u", message=turn, sampled=True, token_ids=ids[0], logprobs=[-0.25] * len(ids[0])),
            Node(id="r", parent="a", message=message("tool", f"out\n{said}\n", call_id="c")),
            Node(id="b", parent="r", message=message("assistant", f"bare {secret} again"), sampled=True),
        ],
        tools=[{"type": "function", "function": {"name": "bash", "description": said}}],
        harness={"guides": [said]},
        events=[{"kind": "limit", "text": said}],
        diff=f"--- a/x\n+++ b/x\n+{said}\n",
        meta={"cwd": said, "nested": {"deep": [said]}},
    )  # fmt: skip


def on_disk(folder: Path) -> str:
    return "".join(p.read_text(errors="replace") for p in sorted(folder.rglob("*")) if p.is_file())


@pytest.mark.parametrize("tokenizer", [None, WORDS], ids=["without tokenizer", "with tokenizer"])
def test_none_is_on_disk_after_an_import(tmp_path: Path, tokenizer: Words | None) -> None:
    source = tmp_path / "in"
    TrajectoryStore(source / "trajectories.jsonl").extend([spread(p) for p in planted()])
    before = on_disk(source)
    assert all(json.dumps(p.secret)[1:-1] in before for p in planted()), "the secrets were planted"
    out = tmp_path / "out"
    summary = import_traces([source / "trajectories.jsonl"], out, redactor=Redactor(SALT, tokenizer))
    written = on_disk(out)
    for p in planted():
        assert not [row for row in pieces(p.secret) if row in written], p.kind
        assert not [row for row in pieces(json.dumps(p.secret)[1:-1]) if row in written], p.kind
    assert summary.trajectories == 40 and sum(summary.cuts.values()) > 40 * 10
    assert (summary.nodes_without_ids == 0) == (tokenizer is not None)
    rows = [row for p in planted() for row in pieces(p.secret)]
    for trajectory in read_trajectories(out)[0]:
        for node in trajectory.nodes:
            decoded = WORDS.decode(node.token_ids or [])
            assert not [row for row in rows if row in decoded]
        assert [f for f in check(trajectory) if f.level == "error"] == []


def test_every_placeholder_is_untrained(redactor: Redactor) -> None:
    for item in planted():
        trajectory = spread(item)
        redactor.trajectory(trajectory)
        for node in trajectory.nodes:
            text = plain(node.message)
            found = [m.span() for m in PLACEHOLDER.finditer(text)]
            assert found, (item.kind, node.id)
            covered = {i for a, b in node.untrained for i in range(a, b)}
            assert all(i in covered for a, b in found for i in range(a, b))
            if not (node.id == "a" and node.token_ids is None):
                assert len(covered) == sum(b - a for a, b in found), "nothing else is marked"


def test_arguments_and_raw_text_still_agree(redactor: Redactor) -> None:
    hidden = r'{"to": "jo.doe\u0040corp.io", "n": 1}'
    call = Call(id="c", name="mail", arguments=json.loads(hidden), raw=hidden)
    node = Node(id="a", parent=None, message=Message(role="assistant", parts=(Text(text="now: "), call)), sampled=True)
    trajectory = Trajectory(id="t", nodes=[node])
    redactor.trajectory(trajectory)
    (after,) = trajectory.nodes[0].message.calls
    assert json.loads(after.raw) == after.arguments and "corp.io" not in after.raw
    ((start, end),) = trajectory.nodes[0].untrained
    assert PLACEHOLDER.fullmatch(plain(trajectory.nodes[0].message)[start:end])


def test_ids_of_untouched_spans_are_unchanged() -> None:
    redactor = Redactor(SALT, WORDS)
    for item in planted():
        trajectory = spread(item)
        before = list(trajectory.nodes[2].token_ids or [])
        receipt = redactor.trajectory(trajectory)
        node = trajectory.nodes[2]
        assert receipt.spliced_ids == 1 and receipt.dropped_ids == 0 and node.token_ids and node.logprobs
        assert len(node.logprobs) == len(node.token_ids)
        kept, at = [], 0
        for start, end in node.untrained_ids:
            kept.append(node.token_ids[at:start])
            at = end
        kept.append(node.token_ids[at:])
        place = 0
        for run in kept:  # in the old ids, in this order, whole
            place = next(i for i in range(place, len(before) + 1) if before[i : i + len(run)] == run) + len(run)
        assert before[: len(kept[0])] == kept[0] and before[len(before) - len(kept[-1]) :] == kept[-1]
        trained = [p for i, p in enumerate(node.logprobs) if not any(a <= i < b for a, b in node.untrained_ids)]
        assert set(trained) == {-0.25}
        text = WORDS.decode(node.token_ids)
        assert len(PLACEHOLDER.findall(text)) == 4
        spans = [WORDS.decode(node.token_ids[a:b]) for a, b in node.untrained_ids]
        assert sum(len(PLACEHOLDER.findall(s)) for s in spans) == 4


def test_a_node_without_a_secret_keeps_everything() -> None:
    clean = Node(
        id="a", parent=None, message=message("assistant", "fine"), sampled=True, token_ids=WORDS.encode("fine"),
        logprobs=[-1.0] * len(WORDS.encode("fine")),
    )  # fmt: skip
    for tokenizer in (None, WORDS):
        trajectory = Trajectory(id="t", nodes=[clean], meta={"cwd": "/home/jdoe/x"})
        Redactor(SALT, tokenizer).trajectory(trajectory)
        assert trajectory.nodes[0].token_ids == WORDS.encode("fine") and trajectory.nodes[0].untrained == []
        assert "jdoe" not in trajectory.meta["cwd"] and trajectory.meta["cwd"].startswith("/home/REDACTED_user_")


def test_the_receipt_says_where_and_never_what(redactor: Redactor) -> None:
    item = planted()[0]
    trajectory = spread(item)
    receipt = redactor.trajectory(trajectory)
    assert item.secret not in json.dumps(receipt.cuts)
    fields = {cut.get("field") for cut in receipt.cuts}
    assert {"tools", "harness", "events", "diff", "meta"} <= fields
    for cut in (c for c in receipt.cuts if "node" in c):
        text = plain(trajectory.node(cut["node"]).message)
        assert text[cut["start"] : cut["end"]] == cut["placeholder"]


def test_reasons_and_file_names_are_redacted_too(tmp_path: Path) -> None:
    secret = planted()[4].secret
    source = tmp_path / "jo.doe@corp.io.jsonl"
    source.write_text(json.dumps({"messages": [{"role": secret, "content": "x"}]}) + "\n")
    import_traces([source], tmp_path / "out", redactor=Redactor(SALT))
    written = on_disk(tmp_path / "out")
    assert "unknown role" in written and secret[:30] not in written and "jo.doe" not in written


def test_redaction_can_only_be_switched_off_by_name(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    rows = [{"role": "user", "content": "I am jo.doe@corp.io"}, {"role": "assistant", "content": "hi"}]
    source.write_text(json.dumps({"messages": rows}) + "\n")
    summary = import_traces([source], tmp_path / "out", redactor=None)
    assert not summary.redacted and "jo.doe@corp.io" in on_disk(tmp_path / "out")


@pytest.mark.parametrize(
    "piece", ["a", "a@", "-----BEGIN PRIVATE KEY-----", "://a:", 'password="', "cookie: a=bbbbbb; ", "curl -u a:",
              "$2b$", "eyJaaaaaaaa.", "xoxb-1-", "//a/:_authToken=", "1.", "/home/", "authorization: bearer "],
)  # fmt: skip
def test_no_text_makes_it_hang(redactor: Redactor, piece: str) -> None:
    """The suite's time limit is the judge: patterns that go back and forth would take hours on these."""
    redactor.text(piece * (200_000 // len(piece)))
