from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report import runs
from rollout.test_run import Flaky
from transformers import AutoTokenizer
from typer.testing import CliRunner

from inloop.cli.report_ import app
from inloop.errors import DataError
from inloop.report.page import report_facts, write_report

pytestmark = pytest.mark.xdist_group("report")


class Page(HTMLParser):
    """Tags, and the text outside of styles."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.source = file.read_text(encoding="utf-8")
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(self.source)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data if self.tags and self.tags[-1][0] != "style" else ""


def test_a_chain_from_tasks_to_verdict(chain: Path) -> None:
    page = Page(write_report(chain))
    for told in (
        "grpo against base: +",
        "receipt holds",
        "6 tasks of 6 source units: 6 test",
        "12 samples of 12 of 14 trajectories",
        "30 steps on 12 samples, 840 trained tokens",
        "reward below the least",
        "10 telling rollouts",
        "fixed by training",
        "exploit suspect",
        "it went through the hole of a decoy",
    ):
        assert told in page.text, told
    # scores, kinds, stops, two curves of SFT, four of GRPO; time of the stages, of GRPO and of three collections
    assert sum(tag == "svg" for tag, _ in page.tags) == 14
    assert not re.search("could not be drawn|Not all of the run", page.text)


def test_nothing_is_loaded_and_hostile_text_is_text(chain: Path) -> None:
    page = Page(write_report(chain))
    assert not {"script", "img", "link", "iframe", "b><script"} & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), tag
        for name in ("src", "href", "xlink:href", "action"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, name)
    assert "<script>document.title='owned'</script>" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page.source)
    assert max(map(len, page.text.split())) < 3000 and "… (+" in page.text


def test_ids_of_the_plots_are_unique(chain: Path) -> None:
    page = Page(write_report(chain))
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"url\(#([^)]+)\)", page.source)) | {
        str(a["xlink:href"])[1:] for _, a in page.tags if a.get("xlink:href")
    }
    assert used and used <= set(ids)


def test_a_half_written_run_is_told_in_words(chain: Path) -> None:
    file = chain / "evaluations/sft/results.json"
    file.write_text(file.read_text()[:200])
    with (chain / "sft/metrics.jsonl").open("a") as out:
        out.write('{"step": 31, "lo')
    (chain / "grpo/receipt.json").unlink()
    with (chain / "evaluations/base/trajectories.jsonl").open("a") as out:
        out.write('{"id": "torn')
    shutil.rmtree(chain / "evaluations/grpo")
    page = Page(write_report(chain))
    assert "not a results file" in page.text and "torn tail" in page.text
    assert "There is no receipt" in page.text and "base" in page.text
    assert sum(tag == "svg" for tag, _ in page.tags) >= 5


@pytest.mark.parametrize("keep", ["sft", "grpo", "evaluations/base", "data"])
def test_a_folder_of_one_stage(chain: Path, keep: str) -> None:
    page = Page(write_report(chain / keep, chain.parent / "out.html"))
    assert page.tags[-1] and "inloop report" in page.source
    assert ("Nothing was evaluated yet" in page.text) == (keep != "evaluations/base")


def test_only_a_ledger_that_still_grows(chain: Path) -> None:
    folder = chain / "evaluations/sft"
    for file in folder.iterdir():
        if file.name != "trajectories.jsonl":
            file.unlink()
    page = Page(write_report(folder))
    assert "12 rollouts in the folder" in page.text and "10 telling rollouts" in page.text


def test_zero_tasks_and_all_faults(tmp_path: Path, tiny_model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    taskset = runs.make_tasks(tmp_path / "tasks", 2)
    faulty = {"backend": Flaky(99), "retries": 0}
    runs.evaluation(taskset, runs.solve(1.0), tokenizer, tmp_path / "run/base", "base", tiny_model, **faulty)
    taskset.rows = []
    runs.evaluation(taskset, runs.solve(1.0), tokenizer, tmp_path / "run/none", "none", tiny_model)
    page = Page(write_report(tmp_path / "run"))
    assert "none of its 2 tasks could be scored" in page.text and "it was scored on no task at all" in page.text
    assert "no score" in page.text and "sandbox_fault" in page.text
    assert "scored on different tasks, so not compared across: base; none" in page.text


def test_results_of_different_tasks_are_not_compared(chain: Path) -> None:
    file = chain / "evaluations/base/results.json"
    data = json.loads(file.read_text())
    data["taskset"]["hash"] = "another"
    file.write_text(json.dumps(data))
    facts = report_facts(chain)
    assert [p["folders"] for p in facts["comparisons"]] == [["evaluations/sft", "evaluations/grpo"]]
    assert "scored on different tasks" in facts["notes"][0]


def test_one_checkpoint_under_several_settings_is_compared_with_the_first(chain: Path) -> None:
    for file in chain.glob("evaluations/*/results.json"):
        data = json.loads(file.read_text())
        data["checkpoint"] = {"model": "m", "fingerprint": "same"}
        file.write_text(json.dumps(data))
    pairs = report_facts(chain)["comparisons"]
    assert {p["a"] for p in pairs} == {"base"} and len(pairs) == 2


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        write_report(tmp_path / "none")
    with pytest.raises(DataError, match="nothing to report on"):
        write_report(tmp_path)


def test_the_command(chain: Path) -> None:
    told = CliRunner().invoke(app, [str(chain), "-o", str(chain / "x.html")])
    assert told.exit_code == 0 and (chain / "x.html").is_file()
    told = CliRunner().invoke(app, [str(chain), "--json"])
    facts = json.loads(told.stdout)
    assert facts["comparisons"][-1]["headline"] and facts["receipts"]["grpo"]["verdict"] == "holds"
    assert facts["rollouts"] == {"evaluations/base": 12, "evaluations/grpo": 12, "evaluations/sft": 12, "grpo": 8}
