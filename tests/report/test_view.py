from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from report import runs
from typer.testing import CliRunner

from inloop.cli.view_ import app as command
from inloop.errors import ConfigError, DataError
from inloop.report import watch
from inloop.report.reviews import NAME, Review, agreement, read_reviews, summary
from inloop.report.server import HOST, bind, make_app
from inloop.report.watch import Watched

pytestmark = pytest.mark.xdist_group("report")
TOKEN, PORT = "a-token", 4711
HERE = f"http://{HOST}:{PORT}"


@pytest.fixture
def client(chain: Path) -> Iterator[TestClient]:
    with TestClient(make_app(Watched(chain), TOKEN, PORT), base_url=HERE) as made:
        made.cookies.set(f"inloop_{PORT}", TOKEN)
        settle(made)
        yield made


def settle(client: TestClient) -> None:
    """A slow machine reads a folder in several looks."""
    while not client.get("/api/state").json()["complete"]:
        pass


def keys(client: TestClient, q: str = "", **kw: object) -> list[str]:
    return [r["key"] for r in client.get("/api/rollouts", params={"q": q, **kw}).json()["rows"]]


def test_only_who_holds_the_token_and_only_under_our_name(chain: Path) -> None:
    with TestClient(make_app(Watched(chain), TOKEN, PORT), base_url=HERE, follow_redirects=False) as client:
        assert client.get("/").status_code == client.get("/?token=wrong").status_code == 403
        assert client.get("/api/state").status_code == client.get("/static/view.js").status_code == 403
        entered = client.get(f"/?token={TOKEN}")
        assert entered.status_code == 303 and "HttpOnly" in entered.headers["set-cookie"]
        page = client.get("/")
        assert page.status_code == 200 and "script-src 'self'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        assert client.get("/", headers={"host": f"evil.example:{PORT}"}).status_code == 403
        sent = client.post("/api/review", json={}, headers={"origin": "http://evil.example"})
        assert sent.status_code == 403
        assert client.get("/static/../page.py").status_code == client.get("/static/%2e%2e/page.py").status_code == 404


def test_state_has_curves_scores_and_counts(client: TestClient) -> None:
    told = client.get("/api/state").json()
    assert told["complete"] and {x["folder"]: x["count"] for x in told["ledgers"]}["grpo"] == 8
    assert {t["name"]: t["receipt"] for t in told["trainings"]} == {"sft": None, "grpo": "holds"}
    assert told["trainings"][0]["curves"]["loss"][0] == [1, 2.5]
    assert [e["name"] for e in told["evaluations"]] == ["base", "sft", "grpo"]


def test_filters_search_order_and_windows(client: TestClient) -> None:
    everything = keys(client, limit=500)
    assert len(everything) == len(set(everything)) == 44
    assert keys(client, offset=10, limit=5) == everything[10:15]
    assert keys(client, limit=500, reverse=True) == everything[::-1]
    passed = keys(client, "verdict:passed folder:evaluations", limit=500)
    assert passed and not set(passed) & set(keys(client, "verdict:failed", limit=500))
    assert all("grpo:g" in k for k in keys(client, "group:g0", limit=500))
    assert keys(client, "add3 folder:base") == [k for k in everything if k.startswith("evaluations/base:add3-")]
    assert set(keys(client, 'text:"return a + b" folder:base', limit=500)) == set()  # the base never solves one
    assert set(keys(client, 'text:"return a + b" folder:grpo', limit=500)) >= {k for k in passed if "/grpo" in k}
    assert keys(client, 'text:"<script>document"', limit=500) == everything
    turns = [r["turns"] for r in client.get("/api/rollouts?sort=turns&reverse=true").json()["rows"]]
    assert turns == sorted(turns, reverse=True)
    assert client.get("/api/rollouts?limit=100000").status_code == 422


def test_one_rollout_with_its_tokens(client: TestClient, chain: Path) -> None:
    key = keys(client, "folder:evaluations/sft verdict:passed")[0]
    told = client.get("/api/rollout", params={"key": key}).json()
    assert told["vocabulary"] and told["diff"].startswith("--- a/calc.py")
    assert [t["status"] for t in told["reward"]["tests"]] == ["passed", "passed"]
    for turn in told["turns"]:
        text = "".join(t["text"] for t in turn["tokens"])
        assert {t["trained"] for t in turn["tokens"]} == {turn["sampled"]}
        assert all((t["logprob"] is not None) == turn["sampled"] for t in turn["tokens"])
        assert turn["parts"][0]["text"].splitlines()[0][:20] in text
    assert "<script>document.title" in json.dumps(told["turns"]) and "\x1b" not in told["turns"][1]["parts"][0]["text"]


def test_without_the_tokenizer_ids_are_shown(client: TestClient, chain: Path) -> None:
    for file in chain.glob("evaluations/*/results.json"):
        file.unlink()
    with TestClient(make_app(Watched(chain), TOKEN, PORT), base_url=HERE, cookies={f"inloop_{PORT}": TOKEN}) as again:
        settle(again)
        told = again.get("/api/rollout", params={"key": keys(again, "folder:base")[0]}).json()
    assert not told["vocabulary"] and told["turns"][0]["tokens"][0]["text"].startswith("⟨")


def test_a_group_side_by_side_has_the_advantages_of_training(client: TestClient) -> None:
    told = client.get("/api/group", params={"key": "grpo:g00000-0"}).json()
    values = [r["advantage"] for r in told["rollouts"]]
    assert len(values) == 4
    if told["dropped"]:
        assert told["dropped"] == "zero_variance" and values == [None] * 4
    else:
        assert sum(values) == pytest.approx(0, abs=1e-6) and {r["reward"] for r in told["rollouts"]} == {0.0, 1.0}


def test_an_evaluation_has_no_advantages_and_drops_no_group(client: TestClient) -> None:
    for key in keys(client, "folder:base"):
        told, group = (client.get(f"/api/{what}", params={"key": key}).json() for what in ("rollout", "group"))
        assert told["advantage"] is None and not told["dropped"] and not group["dropped"]
        assert {r["advantage"] for r in group["rollouts"]} == {None}


def test_rollouts_that_met_a_fault_can_be_looked_at(client: TestClient, chain: Path) -> None:
    event = {"kind": "sandbox_fault", "message": "no space left"}
    rows = [
        {"id": "lost", "task_id": "add0", "stop": "sandbox_fault", "events": [event]},
        {"id": "gone", "message": "x"},
    ]
    (chain / "evaluations/base/faults.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    with TestClient(make_app(Watched(chain), TOKEN, PORT), base_url=HERE, cookies={f"inloop_{PORT}": TOKEN}) as again:
        settle(again)
        found = keys(again, "folder:faults")
        told = again.get("/api/rollout", params={"key": found[0]}).json()
    assert found == ["evaluations/base faults:lost", "evaluations/base faults:gone"]
    assert told["events"] == [event] and told["reward"] is None and told["turns"] == []


def test_neighbours_follow_the_filter(client: TestClient) -> None:
    failed = keys(client, "verdict:failed", limit=500)
    told = client.get("/api/place", params={"key": failed[1], "q": "verdict:failed"}).json()
    assert told == {"at": 1, "total": len(failed), "before": failed[0], "after": failed[2]}


def test_what_is_not_there_is_told(client: TestClient) -> None:
    told = client.get("/api/rollout", params={"key": "nobody"})
    assert told.status_code == 400 and "no rollout 'nobody'" in told.json()["error"]


def test_a_run_that_grows_is_followed(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "SCAN_EVERY", 0.0)
    lines = (chain / "grpo/trajectories.jsonl").read_bytes().splitlines(keepends=True)
    run = chain.parent / "live"
    run.mkdir()
    with TestClient(make_app(Watched(run), TOKEN, PORT), base_url=HERE, cookies={f"inloop_{PORT}": TOKEN}) as client:
        assert client.get("/api/state").json()["ledgers"] == []
        with (run / "trajectories.jsonl").open("ab") as out:
            out.write(lines[0] + lines[1][:100])
            out.flush()
            assert keys(client) == ["g00000-0"]
            out.write(lines[1][100:])
        (run / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
        assert len(keys(client)) == 2
        assert client.get("/api/state").json()["trainings"][0]["curves"] == {"loss": [[1, 2.0]]}


def test_reviews_are_blind_in_their_own_order_and_appended(client: TestClient, chain: Path) -> None:
    first = client.get("/api/review/next", params={"reviewer": "ann"}).json()
    assert (first["done"], first["of"]) == (0, 36) and set(first) == {
        "done",
        "of",
        "item",
        "instruction",
        "diff",
        "tests",
    }
    assert not {"evaluations", "base", "sft", "grpo", "passed"} & set(json.dumps(first).replace('"', " ").split())
    order = {}
    for reviewer in ("ann", "bob"):
        seen = []
        for _ in range(4):
            told = client.get("/api/review/next", params={"reviewer": reviewer}).json()
            seen.append(told["item"])
            body = {
                "item": told["item"],
                "reviewer": reviewer,
                "accept": "a + b" in told["diff"],
                "reason": runs.HOSTILE,
            }
            assert client.post("/api/review", json=body).json() == {"written": True}
        order[reviewer] = seen
    assert order["ann"] != order["bob"] and len(set(order["ann"])) == 4
    lines = (chain / NAME).read_text().splitlines()
    assert len(lines) == 8 and json.loads(lines[0])["reason"].startswith("<script>")
    told = client.get("/api/review/summary").json()
    assert told["reviews"] == 8 and told["reviewers"] == ["ann", "bob"]
    assert not told["tests_against_people"]["judge_yes_people_no"]


def test_a_review_without_name_reason_or_item_is_refused(client: TestClient) -> None:
    item = client.get("/api/review/next", params={"reviewer": "ann"}).json()["item"]
    good = {"item": item, "reviewer": "ann", "accept": True, "reason": "fine"}
    for wrong in ({"reason": " "}, {"reviewer": ""}, {"item": "none"}):
        assert client.post("/api/review", json=good | wrong).status_code == 400
    assert client.post("/api/review", json=good | {"accept": "yes"}).status_code == 422
    assert client.get("/api/review/next", params={"reviewer": ""}).status_code == 400


def test_acceptance_agreement_and_gap(chain: Path) -> None:
    watched = Watched(chain)
    while watched.look() and not watched.complete:
        pass
    found = {r.key: r for r in watched.find("folder:evaluations")}
    rows = sorted(found)
    votes = [Review(rollout=k, reviewer=who, accept=found[k].entry.passed) for k in rows for who in ("ann", "bob")]
    same = summary(votes, found)
    rate = sum(found[k].entry.passed for k in rows) / len(rows)
    assert same["acceptance"]["mean"] == pytest.approx(rate) and same["acceptance"]["tasks"] == 6
    assert same["agreement"] == {"shared": len(rows), "observed": 1.0, "alpha": 1.0}
    assert same["tests_against_people"]["effect"] == 0
    strict = [Review(rollout=k, reviewer="ann", accept=False) for k in rows]
    model = [Review(rollout=k, reviewer="llm:judge", accept=True) for k in rows]
    told = summary([*strict, *model, Review(rollout="gone", reviewer="ann", accept=True)], found)
    assert told["tests_against_people"]["effect"] == pytest.approx(rate) and told["unknown"] == 1
    assert told["models_against_people"]["llm:judge"]["effect"] == 1.0
    assert told["models_against_people"]["llm:judge"]["judge_yes_people_no"] == rows
    assert told["agreement"] == {"shared": 0, "observed": None, "alpha": None}
    assert summary([], found)["acceptance"]["mean"] is None


def test_agreement_beyond_chance() -> None:
    """Two coders, ten units, the textbook's example of nominal data: alpha 0.095 (Krippendorff 2011)."""
    a, b = (0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)
    votes = [Review(rollout=str(i), reviewer="a", accept=bool(v)) for i, v in enumerate(a)]
    votes += [Review(rollout=str(i), reviewer="b", accept=bool(v)) for i, v in enumerate(b)]
    told = agreement(votes)
    assert told["observed"] == pytest.approx(0.6) and told["alpha"] == pytest.approx(0.095, abs=1e-3)


def test_the_last_word_of_a_reviewer_counts_and_torn_lines_are_passed_over(tmp_path: Path) -> None:
    good = {"rollout": "x", "reviewer": "ann", "reason": "r", "time": 1.0, "task": "t"}
    lines = [json.dumps(good | {"accept": yes}) for yes in (True, False)]
    (tmp_path / NAME).write_text("\n".join([*lines, '{"rollout": "x", "accept": "yes"}', '{"tor']))
    assert [(r.rollout, r.accept) for r in read_reviews(tmp_path)] == [("x", False)]


def test_a_port_that_is_taken_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with bind(0) as taken:
        taken.listen()
        with pytest.raises(ConfigError, match="port"):
            bind(taken.getsockname()[1])
    told = CliRunner().invoke(command, [str(tmp_path / "none"), "--no-open"])
    assert isinstance(told.exception, DataError)
