"""`inloop parity`: training turns replayed through a served endpoint, and a report that can block a release."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from inloop.errors import ConfigError, DataError
from inloop.harness import blocks
from inloop.harness.tools import schemas
from inloop.progress import bar
from inloop.serve.form import TrainedFormat
from inloop.serve.reference import Reference
from inloop.serve.replay import Endpoint, Replay, read, read_calls
from inloop.train.origin import Origin, origin

EXACT = 2e-3
"""Mean |difference| of log-probabilities in float32."""
ROUNDED = 1e-1
"""The same where weights or products are rounded: half precision, quantised."""
SHOWN = 5
AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ParitySettings:
    url: str = ""
    token: str | None = None
    artefact: str = ""
    """Serve this from the embedded engine for the time of the test, instead of a url."""
    dtype: str = "float32"
    """artefact: of the embedded engine."""
    trajectories: tuple[Path, ...] = ()
    samples: Path | None = None
    """The trained samples: the ids of traces that hold only text."""
    turns: int = 40
    tokens: int = 0
    """Sampled a turn; 0 takes the harness's."""
    tolerance: float = 0.0
    """Mean |difference| of log-probabilities; 0 takes 2e-3 for float32 and 0.1 for what is rounded."""
    defect_margin: float = 0.15
    """By how much the share of defective turns may be above the base model's."""
    seed: int = 0


@dataclass(slots=True, kw_only=True)
class Seen:
    """What came back for one turn."""

    turn: Replay
    prompt: list[int]
    ids: list[int]
    logprobs: list[float]
    own_calls: Any
    """What the endpoint made of the turn that it sampled."""
    forced_calls: Any = None
    forced: bool = True
    """False where the endpoint can't be made to say the recorded turn."""


@dataclass(slots=True, kw_only=True)
class Report:
    checkpoint: str
    endpoint: str
    dtype: str
    turns: int = 0
    prompts: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, Any] = field(default_factory=dict)
    logprobs: dict[str, Any] = field(default_factory=dict)
    defects: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": "holds" if self.holds else "fails", **asdict(self)}


def parity(checkpoint: str, settings: ParitySettings) -> Report:
    """Replay, compare, judge. Raises InloopError where there is nothing to compare."""
    if bool(settings.url) == bool(settings.artefact):
        raise ConfigError("parity needs an endpoint", fix="give --url of a server, or --artefact of an export")
    start = origin(checkpoint, other_harness=True)
    form = TrainedFormat(start.tokenizer, start.harness, context=1 << 30)
    replays = read(settings.trajectories, form.dialect, settings.turns, settings.samples)
    with _endpoint(settings) as endpoint:
        seen = _ask_all(endpoint, replays, start, form, settings)
        report = Report(checkpoint=checkpoint, endpoint=settings.artefact or endpoint.url, dtype=endpoint.dtype)
    report.turns = len(seen)
    _compare_prompts(report, seen, form)
    _compare_calls(report, seen, form)
    reference = Reference(start)
    _compare_logprobs(report, seen, reference, start, _tolerance(settings, endpoint.dtype))
    _compare_defects(report, seen, reference, start, form, settings)
    return report


@contextlib.contextmanager
def _endpoint(settings: ParitySettings) -> Iterator[Endpoint]:
    from inloop.serve.server import Settings, serve

    with contextlib.ExitStack() as stack:
        url, token = settings.url, settings.token
        if settings.artefact:
            running = stack.enter_context(serve(Settings(checkpoint=settings.artefact, dtype=settings.dtype)))
            url, token = running.url, running.token
        endpoint = Endpoint(url, token)
        stack.callback(endpoint.close)
        yield endpoint


def _ask_all(
    endpoint: Endpoint, replays: Sequence[Replay], start: Origin, form: TrainedFormat, settings: ParitySettings
) -> list[Seen]:
    most = settings.tokens or start.harness.max_turn_tokens
    tools = _tools(endpoint, start, form)

    def one(pair: tuple[int, Replay]) -> Seen:
        return _ask(endpoint, pair[1], form, tools, most, start.harness.temperature, settings.seed + pair[0])

    with bar("replay", len(replays)) as progress, ThreadPoolExecutor(AT_ONCE) as pool:
        out = []
        for seen in pool.map(one, enumerate(replays)):
            progress.step()
            out.append(seen)
    return out


def _tools(endpoint: Endpoint, start: Origin, form: TrainedFormat) -> list[dict[str, Any]] | None:
    """text: our own server reads blocks when it is given tools; elsewhere the harness reads them."""
    if start.harness.dialect == "native":
        return form.dialect.schemas()
    return schemas(start.harness.tools) if endpoint.ours else None


def _ask(
    endpoint: Endpoint, turn: Replay, form: TrainedFormat, tools: Any, most: int, temperature: float, seed: int
) -> Seen:
    body: dict[str, Any] = {"messages": turn.messages, "temperature": temperature, "seed": seed}
    if tools:
        body["tools"] = tools
    asked = {**body, "max_tokens": most, "logprobs": True, "return_token_ids": True}
    got = endpoint.ask(asked)
    choice = got["choices"][0]
    ids, prompt = choice.get("token_ids"), got.get("prompt_token_ids")
    if ids is None or prompt is None:
        raise DataError(f"{endpoint.url} returns no token ids", fix="serve with inloop, or vLLM 0.22 or later")
    logprobs = [c["logprob"] for c in choice["logprobs"]["content"]]
    own = _served_calls(choice["message"], form, tools)
    seen = Seen(turn=turn, prompt=prompt, ids=ids, logprobs=logprobs, own_calls=own)
    try:
        said = endpoint.ask({**body, "structured_outputs": {"choice": [turn.text]}})["choices"][0]["message"]
        seen.forced_calls = _served_calls(said, form, tools)
    except DataError:
        seen.forced = False
    return seen


def _served_calls(message: dict[str, Any], form: TrainedFormat, tools: Any) -> list[tuple[str, Any]]:
    import json

    if not tools:  # what the harness does with text
        said = blocks.read_turn(message.get("content") or "", form.config.tools)
        return read_calls(said) or []
    out = []
    for call in message.get("tool_calls") or []:
        try:
            out.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
        except ValueError:
            out.append((call["function"]["name"], None))
    return out


def _compare_prompts(report: Report, seen: Sequence[Seen], form: TrainedFormat) -> None:
    """'respelt': a sampled turn in the history comes back from its message in other tokens or white space, which no
    client that sends messages can help; the rest is as the checkpoint's own form renders it."""
    counts = {"same": 0, "respelt": 0, "different": 0}
    examples = []
    for s in seen:
        own = form.render(s.turn.messages, form.dialect.schemas() or None, open_turn=True)
        wanted = own if s.turn.prompt is None else s.turn.prompt
        if wanted == s.prompt:
            counts["same"] += 1
        elif s.prompt == own or form.dialect.decode(wanted) == form.dialect.decode(s.prompt):
            counts["respelt"] += 1
        else:
            counts["different"] += 1
            examples.append(_first_difference(s, wanted, form))
    report.prompts = {**counts, "share": (len(seen) - counts["different"]) / len(seen), "examples": examples[:SHOWN]}
    if counts["different"]:
        report.failures.append(f"{counts['different']} of {len(seen)} prompts are not what the checkpoint saw")


def _first_difference(s: Seen, wanted: Sequence[int], form: TrainedFormat) -> dict[str, Any]:
    at = next((i for i, (a, b) in enumerate(zip(wanted, s.prompt, strict=False)) if a != b), None)
    at = min(len(wanted), len(s.prompt)) if at is None else at
    near = slice(max(0, at - 4), at + 12)
    pieces = {"wanted": form.dialect.decode(wanted[near]), "served": form.dialect.decode(s.prompt[near])}
    return {"turn": s.turn.name, "at": at, **pieces}


def _compare_calls(report: Report, seen: Sequence[Seen], form: TrainedFormat) -> None:
    """The recorded turn, said by the endpoint, and the turn that it sampled: read there and here."""
    examples, checked, same = [], 0, 0
    for s in seen:
        here = read_calls(form.dialect.parse(s.ids)) or []
        pairs = [("sampled", here, s.own_calls)]
        if s.forced:
            pairs.append(("recorded", s.turn.calls or [], s.forced_calls))
        for kind, wanted, served in pairs:
            checked += 1
            same += wanted == served
            if wanted != served:
                examples.append({"turn": s.turn.name, "kind": kind, "wanted": wanted, "served": served})
    report.calls = {
        "checked": checked, "same": same, "share": same / checked, "recorded_turns": sum(s.forced for s in seen),
        "examples": examples[:SHOWN],
    }  # fmt: skip
    if same < checked:
        report.failures.append(f"{checked - same} of {checked} turns are read as other calls")


def _tolerance(settings: ParitySettings, dtype: str) -> float:
    if settings.tolerance:
        return settings.tolerance
    rounded = dtype != "float32" or _is_rounded(settings.artefact)
    return ROUNDED if rounded else EXACT


def _is_rounded(artefact: str) -> bool:
    """Weights that were stored in less than float32."""
    import json

    folder = Path(artefact)
    folder = folder.parent if folder.suffix == ".gguf" else folder
    if not artefact or not folder.is_dir():
        return False
    if any(not file.name.endswith("-f32.gguf") for file in folder.glob("*.gguf")):
        return True
    config = folder / "config.json"
    told = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
    return str(told.get("dtype") or told.get("torch_dtype") or "float32") != "float32"


def _compare_logprobs(
    report: Report, seen: Sequence[Seen], reference: Reference, start: Origin, tolerance: float
) -> None:
    """Against one plain float32 forward of the checkpoint; and against its base, which must be farther away."""
    temperature = start.harness.temperature
    off: list[float] = []
    base_off: list[float] = []
    with bar("score", len(seen)) as progress:
        for s in seen:
            progress.step()
            if not s.ids:
                continue
            off += _apart(s.logprobs, reference.logprobs(s.prompt, s.ids, temperature))
            if reference.has_base:
                base_off += _apart(s.logprobs, reference.base_logprobs(s.prompt, s.ids, temperature))
    mean = statistics.fmean(off) if off else 0.0
    base = statistics.fmean(base_off) if base_off else None
    report.logprobs = {
        "tokens": len(off), "mean_abs": mean, "max_abs": max(off, default=0.0), "tolerance": tolerance,
        "base_mean_abs": base,
    }  # fmt: skip
    if not off:
        report.failures.append("no token was sampled: nothing to compare")
    if not mean <= tolerance:
        report.failures.append(f"log-probabilities are {mean:.2g} apart (most: {tolerance:.2g})")
    elif base is not None and base < mean:
        report.failures.append("the endpoint is nearer to the base model than to the checkpoint")


def _apart(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [abs(x - y) for x, y in zip(a, b, strict=True)]


def _compare_defects(
    report: Report, seen: Sequence[Seen], reference: Reference, start: Origin, form: TrainedFormat,
    settings: ParitySettings,
) -> None:  # fmt: skip
    """A defective turn holds no call that could be run."""
    served = sum(not s.own_calls for s in seen) / len(seen)
    report.defects = {"served": served, "base": None, "margin": settings.defect_margin}
    if not reference.has_base:
        return
    missing, most = 0, settings.tokens or start.harness.max_turn_tokens
    with bar("base model", len(seen)) as progress:
        for number, s in enumerate(seen):
            ids = reference.base_turn(
                s.prompt, most=most, stops=form.dialect.stop_token_ids, temperature=start.harness.temperature,
                seed=settings.seed + number,
            )  # fmt: skip
            missing += not read_calls(form.dialect.parse(ids))
            progress.step()
    report.defects["base"] = missing / len(seen)
    if served > report.defects["base"] + settings.defect_margin:
        report.failures.append(
            f"{served:.0%} of the served turns hold no call that can be run, {report.defects['base']:.0%} of the base's"
        )
