"""`inloop env`: a taskset as an OpenEnv environment."""

from __future__ import annotations

import secrets
from pathlib import Path

import typer

from inloop.cli import console
from inloop.errors import InloopError
from inloop.sandbox.backends import DEFAULT

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Serve a taskset, make a package of it, validate either."""


@app.command()
def serve(
    tasks: Path = typer.Option(..., help="Taskset."),
    host: str = typer.Option("127.0.0.1", help="Address to listen on."),
    port: int = typer.Option(8000, min=0, max=65535, help="0 takes a free one."),
    token: str | None = typer.Option(None, envvar="INLOOP_ENV_TOKEN", help="Token to ask for; one is made if none is."),
    no_auth: bool = typer.Option(False, "--no-auth", help="Ask for none: whoever reaches the port may run commands."),
    max_sessions: int = typer.Option(64, min=1, help="Sessions at once."),
    session_timeout: float = typer.Option(600.0, min=1, help="Seconds that a session without a socket is kept."),
    max_steps: int = typer.Option(100, min=1, help="Steps of an episode."),
    sandbox: str = typer.Option(DEFAULT, help="bubblewrap, docker or unisolated-process."),
    image: str = typer.Option("", help="docker: the image that all tasks run in."),
    harness: Path | None = typer.Option(None, "--harness", help="TOML of a harness: its tools, sensors and clipping."),
    json: bool = typer.Option(False, "--json", help="Print one JSON document when ready."),
) -> None:
    """Serve the tasks to any OpenEnv client until Ctrl-C."""
    _needs_openenv()
    from inloop.config import load
    from inloop.env.app import EnvSettings
    from inloop.env.serve import EnvServer
    from inloop.harness.config import HarnessConfig

    console.quieten(json)
    if no_auth and token:
        raise InloopError("both a token and --no-auth are given", fix="choose one of them")
    asked = None if no_auth else token or secrets.token_urlsafe(24)
    settings = EnvSettings(
        tasks=tasks, host=host, port=port, token=asked, max_sessions=max_sessions, session_timeout=session_timeout,
        max_steps=max_steps, sandbox=sandbox, image=image,
        harness=load(HarnessConfig, harness, []) if harness else HarnessConfig(),
    )  # fmt: skip
    with EnvServer(settings) as server:
        if json:
            console.emit({"url": server.url, "token": asked, "tasks": str(tasks), "max_sessions": max_sessions})
        else:
            count = sum(len(rows) for rows in server.server.hall.catalog.splits.values())
            console.out.print(f"{count} tasks at {server.url}; Ctrl-C ends all sessions", highlight=False)
            header = f" -H 'Authorization: Bearer {asked}'" if asked else ""
            console.out.print(f"[cyan]next[/cyan]    curl {server.url}/admin/sessions{header}", soft_wrap=True)
        server.wait()


def _needs_openenv() -> None:
    try:
        import openenv  # noqa: F401
    except ImportError:
        raise InloopError("the environment server needs OpenEnv", fix="pip install 'inloop[env,serve]'") from None
