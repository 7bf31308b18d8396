"""The peer of the docker backend's protocol tests: it acts on the documented command line and logs it.

`run --detach --name N ... IMAGE CMD`, `exec [--interactive] N CMD`, `inspect`, `rm --force --volumes N`, `version`.
A container is a folder; the paths of its tmpfs folders are rewritten to folders below it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ["FAKE_DOCKER"])
ROOT.mkdir(exist_ok=True)
verb, *words = sys.argv[1:]
with (ROOT / "log").open("a") as log:
    log.write(" ".join([verb, *words]).replace("\n", " ") + "\n")
VALUED = {
    "--name", "--label", "--network", "--cap-drop", "--security-opt", "--user", "--hostname", "--pids-limit",
    "--memory", "--memory-swap", "--shm-size", "--ulimit", "--tmpfs", "--workdir", "--env", "--format",
}  # fmt: skip


def parse(words):
    options, rest = [], list(words)
    while rest and rest[0].startswith("--"):
        name = rest.pop(0)
        options.append((name, rest.pop(0) if name in VALUED else ""))
    return options, rest


def end_sessions(folder):
    if (folder / "sessions").exists():
        for session in (folder / "sessions").read_text().split():
            subprocess.run(["pkill", "-KILL", "-s", session])


options, rest = parse(words)
first = dict(reversed(options))
if verb == "version":
    print("fake")
elif verb == "run":
    folder = ROOT / first["--name"]
    (folder / "workspace").mkdir(parents=True)
    (folder / "tmp").mkdir()
    (folder / "env").write_text("\0".join(value for name, value in options if name == "--env"))
elif verb == "exec":
    folder, command = ROOT / rest[0], rest[1:]
    if command[-1] == "kill -9 -1":
        end_sessions(folder)
        sys.exit(0)
    if any("kill -9 -1" in word for word in command):
        sys.exit("this container shares the machine's process ids: refused")
    os.setsid()
    with (folder / "sessions").open("a") as out:
        out.write(f"{os.getpid()}\n")
    if "--interactive" not in first:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    env = dict(pair.split("=", 1) for pair in (folder / "env").read_text().split("\0"))
    links = [w for d in ("bin", "lib", "lib64") for w in ("--symlink", f"usr/{d}", f"/{d}")]
    view = [
        "--ro-bind",
        "/usr",
        "/usr",
        *links,
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--bind",
        str(folder / "tmp"),
        "/tmp",
    ]
    view += ["--bind", str(folder / "workspace"), "/workspace", "--chdir", "/workspace", "--"]
    env = {"PATH": "/usr/bin:/bin", **env}
    os.execve(os.environ["FAKE_BWRAP"], ["bwrap", *view, *command], env)
elif verb == "inspect":
    print("false")
elif verb == "rm":
    folder = ROOT / rest[-1]
    end_sessions(folder)
    shutil.rmtree(folder, ignore_errors=True)
