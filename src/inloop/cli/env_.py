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


@app.command()
def init(
    folder: Path = typer.Argument(..., help="A new folder."),
    tasks: Path = typer.Option(..., help="Taskset; it is copied, hidden tests and solutions too."),
    name: str = typer.Option("inloop_env", help="Of the environment and its module; ends in _env."),
    no_auth: bool = typer.Option(False, "--no-auth", help="Let the image start without a token."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Write an OpenEnv package: to be validated, built and pushed as it is."""
    _needs_openenv()
    from inloop.env.package import init as write

    console.quieten(json)
    written = [str(p.relative_to(folder)) for p in write(folder, tasks, name=name, no_auth=no_auth)]
    if json:
        console.emit({"folder": str(folder), "files": written})
    else:
        console.out.print(", ".join(written), soft_wrap=True)
        console.closing(str(folder), f"inloop env validate {folder}   (then: openenv push --private)")


@app.command()
def validate(
    target: str = typer.Argument(..., help="A package, or the URL of a running server."),
    level: str = typer.Option("runtime", help="static, or runtime: also start it and play its plan."),
    token: str | None = typer.Option(None, envvar="INLOOP_ENV_TOKEN", help="For a URL."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Run OpenEnv's own graders, without docker; exits 1 when one fails."""
    _needs_openenv()
    from inloop.env.validation import validate_package, validate_url

    console.quieten(json)
    if target.startswith(("http://", "https://")):
        told = validate_url(target, token)
        checks = [("pass" if c["passed"] else "fail", c["id"], c.get("details") or "") for c in told["criteria"]]
        verdict = "pass" if told["passed"] else "fail"
    else:
        report = validate_package(Path(target), level)
        told = report.model_dump(mode="json")
        checks = [(r.status.value, r.check_id, "; ".join(r.evidence)) for r in report.results]
        verdict = report.verdict.value
    if json:
        console.emit(told)
    else:
        for status, check, why in checks:
            console.out.print(f"{status:5} {check}  {why if status != 'pass' else ''}".rstrip(), soft_wrap=True)
        console.out.print(f"verdict: {verdict}")
    raise typer.Exit(1 if verdict == "fail" else 0)


def _needs_openenv() -> None:
    try:
        import openenv  # noqa: F401
    except ImportError:
        raise InloopError("the environment server needs OpenEnv", fix="pip install 'inloop[env,serve]'") from None
