"""`inloop sandbox probe|list|clean`."""

from __future__ import annotations

import time

import typer
from rich.table import Table

from inloop.cli import console
from inloop.errors import SandboxFault
from inloop.progress import bar
from inloop.sandbox import lease
from inloop.sandbox.backends import DEFAULT, NAMES, open_backend

app = typer.Typer(no_args_is_help=True, add_completion=False)
JSON = typer.Option(False, "--json", help="One JSON document on stdout.")


@app.command()
def probe(
    backend: str = typer.Option(DEFAULT, "--backend", help=f"One of {', '.join(NAMES)}."),
    image: str = typer.Option("", "--image", help="Docker image, for the docker backend."),
    json_output: bool = JSON,
) -> None:
    """Start one sandbox and say what this machine isolates; exit 2 with the fix when it can't."""
    console.quieten(json_output)
    with bar("probe", 1) as progress:
        found = open_backend(backend, image=image).probe()
        progress.step()
    if json_output:
        console.emit(
            {"backend": found.backend, "level": found.level, "limits": found.limits, "notes": list(found.notes)}
        )
        return
    console.out.print(f"{found.backend}: isolation {found.level}, limits by {found.limits}", highlight=False)
    for note in found.notes:
        console.out.print(f"  {note}", highlight=False, soft_wrap=True)
    console.closing("nothing", "inloop doctor")


@app.command("list")
def list_(json_output: bool = JSON) -> None:
    """Open sandboxes of this user, with their owners; stale ones belong to a process that is gone."""
    console.quieten(json_output)
    found = lease.leases()
    if json_output:
        console.emit([one.as_json() for one in found])
        return
    table = Table("id", "owner", "process", "state", "age", "last command")
    now = time.time()
    for one in found:
        state = "live" if one.alive else "[red]stale[/red]"
        process = one.process.partition("-")[0]
        table.add_row(one.id, one.owner, process, state, _seconds(now - one.opened), _seconds(now - one.heartbeat))
    console.out.print(table if found else "no sandbox is open")
    stale = sum(not one.alive for one in found)
    console.closing("nothing", "inloop sandbox clean" if stale else "")


@app.command()
def clean(json_output: bool = JSON) -> None:
    """Remove what dead owners left: processes, control groups, containers, folders. Live sandboxes are not touched."""
    console.quieten(json_output)
    with bar("clean", 1) as progress:
        done = lease.clean()
        progress.step()
    if json_output:
        console.emit({"leases": done.leases, "processes": done.processes, "groups": done.groups, "left": done.left})
    else:
        counts = f"{len(done.leases)} stale leases, {len(done.processes)} processes, {len(done.groups)} control groups"
        console.out.print(f"{counts} removed", highlight=False)
        console.closing("nothing" if not done.anything else "removed what dead owners left")
    if done.left:
        raise SandboxFault(f"could not remove {', '.join(done.left)}", fix="try again, or as root")


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"
