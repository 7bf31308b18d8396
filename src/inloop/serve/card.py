"""The model card, written from the run folder: what is there is told, and what is not there is said to be missing."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inloop import __version__
from inloop.errors import InloopError
from inloop.evaluate.results import NAME as RESULTS
from inloop.evaluate.results import Results, load_results
from inloop.tasks.taskset import Taskset
from inloop.train.checkpoint import About, read_about
from inloop.train.receipt import NAME as RECEIPT

MISSING = "Not recorded in the run folder."
LOAD = {
    "adapter": "from peft import AutoPeftModelForCausalLM\nmodel = AutoPeftModelForCausalLM.from_pretrained(FOLDER)",
    "merged": "from transformers import AutoModelForCausalLM\nmodel = AutoModelForCausalLM.from_pretrained(FOLDER)",
    "gguf": "llama-server -m FOLDER/model-TYPE.gguf   # or any other runtime of GGUF",
}


@dataclass(slots=True, kw_only=True)
class Facts:
    """All that a card tells."""

    about: About
    run: Path | None
    """The recipe's folder, or the training run's own."""
    tasks: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, dict[str, int]] = field(default_factory=dict)
    results: list[Results] = field(default_factory=list)
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    receipt: dict[str, Any] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


def gather(checkpoint: Path, run: Path | None = None) -> Facts:
    """Look through `run`, or the folders that the checkpoint lies in: RECIPE/grpo/checkpoints/last."""
    here = checkpoint.resolve()
    inside = [p for p in (here.parent, *here.parents[1:4]) if (p / "config.toml").is_file()]
    root = run or (inside[-1] if inside else None)
    facts = Facts(about=read_about(checkpoint), run=root)
    for folder in dict.fromkeys([*inside, *([run] if run else [])]):
        _read(facts, folder)
    return facts


def _read(facts: Facts, folder: Path) -> None:
    for file in sorted({*folder.glob(f"evaluations/*/{RESULTS}"), *folder.glob(RESULTS)}):
        try:
            facts.results.append(load_results(file))
        except InloopError as error:
            facts.unreadable.append(error.message)
    facts.comparisons += _json(facts, folder / "comparison.json", [])
    facts.receipt = _json(facts, folder / RECEIPT, facts.receipt)
    if (folder / "tasks").is_dir():
        facts.tasks = _tasks(facts, folder / "tasks")
    if (folder / "data").is_dir():
        facts.samples = _samples(facts, folder / "data")


def _json(facts: Facts, file: Path, default: Any) -> Any:
    if not file.is_file():
        return default
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        facts.unreadable.append(f"{file.name}: {error}")
        return default


def _tasks(facts: Facts, folder: Path) -> dict[str, Any]:
    try:
        rows = Taskset.open(folder).rows
    except InloopError as error:
        facts.unreadable.append(error.message)
        return {}
    return {
        "splits": dict(Counter(r.split or "(none)" for r in rows)),
        "kinds": dict(Counter(r.kind or "-" for r in rows)),
        "units": len({r.unit for r in rows}),
        "audited": sum(r.audited for r in rows),
        "count": len(rows),
        "sources": dict(Counter(r.repository or str(r.provenance.get("builder") or "-") for r in rows)),
        "licences": dict(Counter(str(r.provenance.get("licence") or "unknown") for r in rows)),
    }


def _samples(facts: Facts, folder: Path) -> dict[str, dict[str, int]]:
    from inloop.data.sample import read_samples

    try:
        return dict(read_samples(folder)[1].counts)
    except InloopError as error:
        facts.unreadable.append(error.message)
        return {}


def write_card(facts: Facts, *, form: str, kind: str) -> str:
    """Markdown with the front matter that hubs read."""
    about = facts.about
    head = ["---", f"base_model: {json.dumps(about.base_model)}", "tags: [inloop, code, agent]",
            "pipeline_tag: text-generation", "---", ""]  # fmt: skip
    harness = about.harness
    title = [
        f"# {about.run or 'inloop checkpoint'}, step {about.step}",
        "",
        f"A coding agent trained with inloop {__version__} from `{about.base_model}` (weights {about.base}). "
        f"It is a model *and* a harness: dialect `{about.dialect or '?'}`, harness `{harness.get('hash', '?')}`, "
        f"chat template `{about.template}`; `inloop.json` has them whole.",
        "",
        f"This folder: {form}{f', {kind}' if kind else ''}.",
        "",
        "```\n" + LOAD[form].replace("TYPE", kind) + "\n```",
        "",
        "`inloop serve FOLDER` serves it in the dialect that it was trained in; `inloop parity` shows that an endpoint "
        "does.",
    ]
    parts = {
        "Data": _data(facts),
        "Tasks": _about_tasks(facts),
        "Held-out scores": _scores(facts),
        "Training": _training(facts),
        "Limits": _limits(facts),
        "Licences": _licences(facts),
    }
    body = [line for name, lines in parts.items() for line in ("", f"## {name}", "", *(lines or [MISSING]))]
    return "\n".join([*head, *title, *body]) + "\n"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name}: {n}" for name, n in counts.items()) or "none"


def _data(facts: Facts) -> list[str]:
    names = {"source": "Samples by source", "teacher": "by teacher", "tokens": "by origin of their tokens"}
    return [f"- {told}: {_counted(facts.samples[key])}" for key, told in names.items() if key in facts.samples]


def _about_tasks(facts: Facts) -> list[str]:
    if not (t := facts.tasks):
        return []
    return [
        f"- {t['count']} tasks of {t['units']} source units, {t['audited']} audited; splits: {_counted(t['splits'])}",
        f"- kinds: {_counted(t['kinds'])}",
        f"- sources: {_counted(t['sources'])}",
    ]


def _scores(facts: Facts) -> list[str]:
    if not facts.results:
        return []
    ks = sorted({k for r in facts.results for k in r.summary if k.startswith("pass@")}, key=lambda k: int(k[5:]))
    out = [
        "95 % intervals over tasks. Faults of the infrastructure are in no rate. The ceiling is how many of the "
        "audited tasks their own solution passes.",
        "",
        "| checkpoint | tasks | samples | " + " | ".join(ks) + " | ceiling | faults |",
        "|---" * (5 + len(ks)) + "|",
    ]
    for r in facts.results:
        s = r.summary
        scores = " | ".join(_percent(s.get(k)) for k in ks)
        ceiling = f"{s['ceiling']['solved']} of {s['ceiling']['audited']}" if s["ceiling"]["audited"] else "not audited"
        faults = _counted(s["faults"])
        out.append(
            f"| {r.name} | {s['tasks_scored']} of {s['tasks']} | {s['samples']} | {scores} | {ceiling} | {faults} |"
        )
    for pair in facts.comparisons:
        told = pair.get("comparison") or pair
        out.append(f"\n{pair.get('a')} -> {pair.get('b')}: **{told.get('verdict')}**")
    return out


def _percent(score: dict[str, Any] | None) -> str:
    if not score or score.get("mean") is None:
        return "-"
    return f"{100 * score['mean']:.1f} % [{100 * score['low']:.1f}, {100 * score['high']:.1f}]"


def _training(facts: Facts) -> list[str]:
    metrics = ", ".join(f"{name}: {value:.4g}" for name, value in facts.about.metrics.items())
    out = [f"- metrics at step {facts.about.step}: {metrics or 'none'}"]
    if r := facts.receipt:
        identity = "not measured" if r.get("token_identity") is None else f"{100 * r['token_identity']:.2f} %"
        out += [
            f"- receipt: {r.get('verdict')}; {identity} of {r.get('trained_tokens')} trained tokens are sampled ones",
            f"- faults: {_counted(r.get('faults') or {})}; dropped: {_counted(r.get('drops') or {})}",
        ]
        out += [f"- fails: {failure}" for failure in r.get("failures") or []]
    return out


def _limits(facts: Facts) -> list[str]:
    harness = facts.about.harness
    out = [
        "- It was trained in one harness and is nothing without it: other prompts, tools or turn limits are untested.",
        f"- At most {harness.get('max_turns', '?')} turns of {harness.get('max_turn_tokens', '?')} tokens were seen.",
        "- Scores hold for tasks of the kinds above; other languages, repositories and longer work are not measured.",
        "- What it writes is code of an unknown author: run it in a sandbox and read it before you keep it.",
    ]
    return [*out, *(f"- could not be read for this card: {told}" for told in facts.unreadable)]


def _licences(facts: Facts) -> list[str]:
    out = [f"- base model `{facts.about.base_model}`: its own licence holds for what is derived from it"]
    if facts.tasks:
        out.append(f"- tasks by licence of their source: {_counted(facts.tasks['licences'])}")
    if "licence" in facts.samples:
        out.append(f"- samples by licence of their source: {_counted(facts.samples['licence'])}")
    return out if len(out) > 1 else [*out, f"- sources: {MISSING.lower()}"]
