"""The `inloop` command: command groups are imported when they are called, so that `inloop --help` is quick."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from typing import Any

import typer
import typer.main
from rich.console import Console
from rich.markup import escape

from inloop import __version__
from inloop.errors import InloopError

COMMANDS = {
    "quickstart": "The main job: one better agent, in one command.",
    "doctor": "Try one real task through the whole chain, and this machine; print a fix beside what failed.",
    "train": "Run the stages that a recipe names.",
    "tasks": "Build, audit, split and look at tasks.",
    "sandbox": "What this machine isolates; leases and their janitor.",
    "verify": "Judge a workspace by a task's hidden tests.",
    "collect": "Run rollouts: tasks x harness x engine -> trajectories.",
    "traces": "Look at, check, import and export trajectories.",
    "data": "Select, mask, audit and show training samples.",
    "sft": "Learn from good traces.",
    "advise": "Sample a few rollouts a task and say whether RL has a signal.",
    "grpo": "Learn from passing hidden tests.",
    "eval": "Score a checkpoint on held-out tasks.",
    "compare": "Better, worse, or can't tell; the gate that promotes checkpoints.",
    "report": "One self-contained HTML page of a run.",
    "view": "A local page that follows a run.",
    "engine": "Run the embedded engine behind the vLLM-shaped interface.",
    "env": "Serve a taskset as an OpenEnv environment.",
    "serve": "A checkpoint behind an OpenAI-compatible endpoint.",
    "code": "The agent in your own repository.",
    "parity": "Prove that what is served is what was trained.",
    "export": "Adapter, merged weights or GGUF, with a model card.",
    "loop": "Watch sessions, learn from them, promote through the gate.",
}
"""name -> help; the command lives in `inloop.cli.<name>_` when the file exists."""


INTERRUPTED = 130
"""How typer ends on Ctrl-C, without a word."""


class LazyGroup(typer.core.TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in COMMANDS if importlib.util.find_spec(f"inloop.cli.{name}_")]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS or not importlib.util.find_spec(f"inloop.cli.{cmd_name}_"):
            return None
        command = typer.main.get_command(importlib.import_module(f"inloop.cli.{cmd_name}_").app)
        command.name, command.help = cmd_name, COMMANDS[cmd_name]
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, COMMANDS[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands") if rows else contextlib.nullcontext():
            formatter.write_dl(rows or [("none", "nothing is installed")])


app = typer.Typer(
    cls=LazyGroup, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True
)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    """Train coding agents in the loop they run in."""
    if version:
        print(__version__)
        raise typer.Exit


def main() -> None:
    error_console = Console(stderr=True)
    try:
        app()
    except InloopError as error:
        error_console.print(f"[red]error[/red] {escape(error.message)}", highlight=False, soft_wrap=True)
        if error.fix:
            error_console.print(f"[yellow]fix[/yellow]   {escape(error.fix)}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            error_console.print("stopped; what was finished is kept")
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
