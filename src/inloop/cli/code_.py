"""`inloop code`: the agent in your own repository."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import typer
from rich.console import Console
from rich.text import Text as Rich

from inloop.cli import console
from inloop.config import load
from inloop.harness.clip import clip
from inloop.harness.config import HarnessConfig
from inloop.harness.policy import Turn
from inloop.harness.tools import Observation
from inloop.rollout.engines import EngineConfig, Kind
from inloop.sandbox.backends import DEFAULT
from inloop.serve.code.agent import Code, CodeSettings, Outcome, Watcher
from inloop.serve.code.session import Session
from inloop.trace.show import visible
from inloop.types import Call, Thinking

app = typer.Typer(rich_markup_mode=None)
SHOWN = 1200
"""Characters of one observation on the screen; the model sees what the harness gives it."""
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@app.command()
def main(
    task: str = typer.Argument("", help="What is to be done."),
    repository: Path = typer.Option(Path(), "-C", "--repository", help="The repository; it is copied, not touched."),
    model: str = typer.Option("smollm2-135m", "-m", "--model", envvar="INLOOP_MODEL", help="A checkpoint, or a model."),
    engine: str = typer.Option("embedded", help="embedded, vllm, chat (any OpenAI-compatible API) or scripted."),
    url: str = typer.Option("", help="chat, vllm: where it is."),
    key_variable: str = typer.Option("OPENAI_API_KEY", help="chat: the environment variable with the key."),
    harness: Path | None = typer.Option(None, help="TOML of another harness than the checkpoint's."),
    test: str = typer.Option("python -m pytest -q", help="Runs the visible tests; '' where there are none."),
    max_turns: int = typer.Option(0, min=0, help="0 takes the harness's."),
    sandbox: str = typer.Option(DEFAULT, help="bubblewrap, docker or unisolated-process."),
    resume: str = typer.Option("", help="Go on with this session, after its last finished turn."),
    yes: bool = typer.Option(False, "--yes", help="Apply without asking, when the tests pass."),
    data: Path | None = typer.Option(None, help="Where sessions and their trajectories are kept."),
    json_output: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Works in a sandboxed copy, shows each step, and applies the diff when you say so."""
    console.quieten(json_output)
    settings = CodeSettings(
        model=model,
        engine=EngineConfig(kind=cast(Kind, engine), url=url, key_variable=key_variable),
        harness=load(HarnessConfig, harness) if harness else None,
        test_command=test,
        max_turns=max_turns,
        sandbox=sandbox,
        data=data,
    )
    screen = Console(stderr=True, quiet=True) if json_output else console.out
    code = Code(settings, Screen(screen))
    session = code.resume(resume) if resume else code.begin(repository, task)
    outcome = _work(code, session)
    _show(screen, outcome)
    _decide(code, outcome, yes, json_output)


def _work(code: Code, session: Session) -> Outcome:
    if session.trajectory.stop is not None:  # it was finished, and not yet decided on
        return code.judge(session)
    try:
        return code.work(session)
    except KeyboardInterrupt:
        print(f"stopped; go on with: inloop code --resume {session.id}", file=sys.stderr)
        raise


def _decide(code: Code, outcome: Outcome, yes: bool, json_output: bool) -> None:
    """Apply, keep for later, or let go; and say so."""
    asked = not yes and not json_output and sys.stdin.isatty() and not outcome.diff.empty
    accepted = (yes and outcome.fine) or (asked and typer.confirm("apply?", default=False))
    waits = not outcome.diff.empty and not accepted and not asked
    told: dict[str, Any] = {"session": outcome.session.id, "stop": outcome.stop.value, "applied": [], "kept": waits,
                            "diff": outcome.patch, "tests_passed": outcome.tests and outcome.tests.ok,
                            "rejected": outcome.diff.rejected}  # fmt: skip
    if accepted:
        told["applied"] = code.accept(outcome)
    if not waits:
        told["trajectory"] = str(code.store(outcome, accepted=accepted))
    if json_output:
        console.emit(told)
    elif waits:
        console.closing(f"session {outcome.session.id}", f"inloop code --resume {outcome.session.id} --yes")
    elif accepted:
        console.closing(f"{len(told['applied'])} files in {outcome.session.repository}")
    if not outcome.fine:
        raise typer.Exit(1)


class Screen(Watcher):
    """Each step as it happens; what an agent or a program wrote is shown without its control characters."""

    def __init__(self, screen: Console) -> None:
        self._screen = screen

    def copied(self, files: int, left_out: Counter[str]) -> None:
        told = ", ".join(f"{n} {why}" for why, n in left_out.items())
        self._say(f"{files} files copied" + (f"; left out: {told}" if told else ""), "dim")

    def turn(self, number: int, turn: Turn) -> None:
        self._say(f"\n{number}  {turn.tokens} tokens, {turn.seconds:.1f} s", "bold")
        for part in turn.message.parts:
            style = "dim italic" if isinstance(part, Thinking) else "cyan" if isinstance(part, Call) else ""
            self._say(_words(part), style)

    def results(self, results: Sequence[tuple[Call | None, Observation]]) -> None:
        for _, observation in results:
            self._say(clip(observation.text, SHOWN), "red" if observation.is_error else "dim")

    def _say(self, text: str, style: str) -> None:
        if text.strip():
            self._screen.print(Rich(visible(text), style=style), soft_wrap=True)


def _words(part: Any) -> str:
    if isinstance(part, Call):
        return part.raw if part.embedded else f"{part.name} {part.raw}"
    return getattr(part, "text", "")


def _show(screen: Console, outcome: Outcome) -> None:
    screen.print(f"\n[bold]{outcome.stop.value}[/bold]")
    if outcome.diff.empty:
        screen.print("nothing was changed")
    for line in visible(outcome.patch).split("\n"):
        screen.print(Rich(line, style=COLOURS.get(line[:1], "")), soft_wrap=True)
    written = [*outcome.diff.changed, *(f"{path} (deleted)" for path in outcome.diff.deleted)]
    if written:  # all of them: a diff that is very long is clipped above
        screen.print(Rich(visible(f"it writes: {', '.join(written)}"), style="bold"), soft_wrap=True)
    for path, why in outcome.diff.rejected:
        screen.print(Rich(visible(f"not taken over: {path} ({why})"), style="yellow"))
    if outcome.tests is not None:
        word, style = ("pass", "green") if outcome.tests.ok else ("fail", "red")
        if not outcome.tests.ok:
            screen.print(Rich(visible(clip(outcome.tests.stdout + outcome.tests.stderr, SHOWN)), style="dim"))
        screen.print(Rich(f"the tests {word}: {outcome.session.test_command}", style=style))
