"""The protocol, on every backend that this machine can run; then what only bubblewrap promises."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inloop.errors import InloopError, SandboxFault, TaskError
from inloop.sandbox import profile
from inloop.sandbox.backends import NAMES, open_backend
from inloop.sandbox.base import Sandbox, SandboxSpec

checks = sys.modules["sandbox_checks"]
HERE = Path(__file__).parent


@pytest.fixture
def fake_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` that keeps to the command line's contract and runs what it is asked to on this machine."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -I\n" + (HERE / "fake_docker.py").read_text())
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_BWRAP", profile.find_bwrap()[0])
    monkeypatch.setenv("FAKE_DOCKER", str(tmp_path / "docker"))
    return tmp_path / "docker"


@pytest.fixture(params=NAMES)
def opened(request: pytest.FixtureRequest) -> Iterator[Callable[..., Sandbox]]:
    if request.param == "docker":
        request.getfixturevalue("fake_docker")
    boxes: list[Sandbox] = []
    folder = checks.workspace()

    def open_(**keywords: object) -> Sandbox:
        spec = SandboxSpec(**{"workspace": folder, "limits": checks.SMALL, "owner": "test", **keywords})
        boxes.append(open_backend(request.param).open(spec))
        return boxes[-1]

    yield open_
    for box in boxes:
        box.close()
    shutil.rmtree(folder)


def test_commands_keep_directory_and_exported_variables(opened: Callable[..., Sandbox]) -> None:
    box = opened(env={"FIRST": "one two"})
    first = box.run("cat a.txt; echo err >&2; echo $FIRST; mkdir -p 'x y'; cd 'x y'; export V='a b'; loose=1; exit 3")
    assert (first.exit_code, first.stdout, first.stderr) == (3, "pristine\none two\n", "err\n")
    second = box.run('pwd; echo "$V.$loose"; unset V; export W=$(printf "1\\n2"); cd ..')
    assert second.stdout == f"{box.workdir}/x y\na b.\n"
    third = box.run('pwd; echo "[$V][$W]"')
    assert third.stdout == f"{box.workdir}\n[][1\n2]\n"


@pytest.mark.parametrize(
    ("command", "code", "out"),
    [
        ("true", 0, ""),
        ("false; true", 0, ""),
        ("exit 7", 7, ""),
        ("exec echo replaced", 0, "replaced\n"),
        ("set -e; false; echo no", 1, ""),
        ("set -u; echo $nothing_here; echo no", 1, ""),
        ("echo 'open", 2, ""),
        ("echo )", 2, ""),
        ("if true", 2, ""),
        ("cat <<E\nbody\nE", 0, "body\n"),
        ("cat <<E\nno end", 0, "no end\n"),
        ("kill -9 $BASHPID", 137, ""),
        ("trap 'echo bye' EXIT; echo hi", 0, "hi\nbye\n"),
        ("no_such_program", 127, ""),
        ("read line; echo got $line", 0, "got\n"),
        ("exec 1>&-; echo lost", 1, ""),
        ("echo 'a\\b' | tr b c; echo \"$(echo sub)\"", 0, "a\\c\nsub\n"),
        ("f() { return 4; }; f", 4, ""),
        ("echo a # comment", 0, "a\n"),
        ("echo 'é ü 漢'", 0, "é ü 漢\n"),
        ("printf '\\xff'", 0, "\ufffd"),
    ],
)
def test_what_breaks_a_shell_breaks_only_its_own_command(
    opened: Callable[..., Sandbox], command: str, code: int, out: str
) -> None:
    box = opened()
    box.run("export KEPT=yes; mkdir d; cd d")
    result = box.run(command)
    assert result.exit_code == code or (code == 1 and result.exit_code == 127), result  # bash: set -u leaves with 127
    assert out == result.stdout or (command.startswith("trap") and result.stdout == "hi\nbye\n")
    after = box.run("echo $KEPT; basename $PWD")
    assert after.stdout.startswith("yes\n"), after


def test_a_deadline_kills_the_command_and_not_the_sandbox(opened: Callable[..., Sandbox]) -> None:
    box = opened()
    result = box.run("echo before; cd sub; sleep 60; echo after", timeout=3)
    assert (result.exit_code, result.limit, result.stdout) == (124, "wall", "before\n")
    assert box.run("cat a.txt").stdout == "pristine\n"


@pytest.mark.parametrize(
    "command",
    [
        "sleep 60; touch after",
        "sleep 60 | true && touch after",
        "sleep 60 && touch after",
        "(sleep 60; touch after); touch after",
        "bash -c 'sleep 60; touch after'; touch after",
        "while sleep 60 || true; do touch after; done",
        "sleep 60\ntouch after",
    ],
)
def test_nothing_of_a_line_goes_on_after_its_deadline(opened: Callable[..., Sandbox], command: str) -> None:
    box = opened()
    assert box.run(command, timeout=0.4).limit == "wall"
    assert box.run("ls").stdout.split() == ["a.txt", "sub"]


def test_output_is_cut_in_the_middle_and_says_so(opened: Callable[..., Sandbox]) -> None:
    result = opened().run("seq 10000")
    assert result.clipped and result.stdout.startswith("1\n2\n") and result.stdout.endswith("\n10000\n")
    assert "bytes cut" in result.stdout and len(result.stdout) < 2 * checks.SMALL.output_bytes


def test_a_background_process_lives_on_and_holds_nothing_up(opened: Callable[..., Sandbox]) -> None:
    box = opened()
    loop = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; echo tick $i; done"
    started = box.run(f"({loop}; echo done > finished) & echo started")
    assert started.stdout.startswith("started\n")
    for _ in range(100):
        if box.run("cat finished").ok:
            return
        time.sleep(0.05)
    raise AssertionError("the background process did not live on")


def test_files(opened: Callable[..., Sandbox]) -> None:
    box = opened()
    box.write("new/deep/file.bin", bytes(range(256)))
    box.write("a.txt", b"short")
    assert box.read("new/deep/file.bin") == bytes(range(256))
    assert box.read(f"{box.workdir}/a.txt") == b"short"
    assert box.run("wc -c < new/deep/file.bin; cat a.txt").stdout.split() == ["256", "short"]
    box.run("echo appended >> a.txt; rm sub/b.txt; mkdir empty")
    diff = box.diff()
    assert set(diff.changed) == {"a.txt", "new/deep/file.bin"} and diff.deleted == ("sub/b.txt",)
    assert diff.changed["a.txt"] == b"shortappended\n"


def test_file_errors(opened: Callable[..., Sandbox]) -> None:
    box = opened()
    with pytest.raises(FileNotFoundError):
        box.read("nope")
    with pytest.raises(IsADirectoryError):
        box.read("sub")
    with pytest.raises(IsADirectoryError):
        box.write("sub", b"")
    for path in ("../x", "/etc/passwd", "sub/../../x"):
        with pytest.raises(ValueError):
            box.read(path)
        with pytest.raises(ValueError):
            box.write(path, b"")


def test_reset_gives_the_pristine_place(opened: Callable[..., Sandbox]) -> None:
    box = opened(setup=("echo made > by_setup",))
    box.run("rm -r sub; echo x > new; export V=1; cd /tmp; sleep 60 & true")
    box.reset()
    result = box.run("pwd; ls; echo [$V]")
    assert result.stdout == f"{box.workdir}\na.txt\nby_setup\nsub\n[]\n"


def test_a_failing_setup_says_what_failed(opened: Callable[..., Sandbox]) -> None:
    with pytest.raises(TaskError, match="no-such-tool"):
        opened(setup=("true", "no-such-tool --now"))


def test_close_ends_a_running_command_and_may_come_twice(opened: Callable[..., Sandbox]) -> None:
    box = opened()
    ended: list[BaseException] = []

    def long() -> None:
        try:
            box.run("sleep 60", timeout=20)
        except SandboxFault as fault:
            ended.append(fault)

    thread = threading.Thread(target=long)
    thread.start()
    time.sleep(0.5)
    box.close()
    thread.join(15)
    box.close()
    assert not thread.is_alive()
    with pytest.raises(SandboxFault):
        box.run("true")


def test_a_missing_workspace_is_told(opened: Callable[..., Sandbox], tmp_path: Path) -> None:
    with pytest.raises(InloopError, match="nowhere"):
        opened(workspace=tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(InloopError, match="not a folder"):
        opened(workspace=tmp_path / "file")


def test_backends_go_by_their_full_name() -> None:
    for name in ("process", "unisolated", "none", ""):
        with pytest.raises(InloopError, match="backend"):
            open_backend(name)
    assert open_backend("unisolated-process").probe().level == "none"


def test_docker_commands_as_documented(fake_docker: Path) -> None:
    folder = checks.workspace()
    box = open_backend("docker", image="some/image:1").open(SandboxSpec(workspace=folder, limits=checks.SMALL))
    box.close()
    shutil.rmtree(folder)
    log = (fake_docker / "log").read_text().splitlines()
    run = next(line for line in log if line.startswith("run "))
    for words in (
        "--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--pids-limit 26",
        "--memory 160m", "--memory-swap 160m", "--user 1000:1000", "--shm-size 16m", "some/image:1",
    ):  # fmt: skip
        assert words in run
    assert any(line.startswith("rm --force --volumes inloop-") for line in log)


# bubblewrap alone


def test_the_kept_shell_can_be_lost(box: Sandbox) -> None:
    box.run("export KEPT=1; cd sub; echo x > /workspace/file")
    for command in ("kill -9 $$", "kill $$", "kill -9 -1", "kill -STOP $$ & sleep 30"):
        result = box.run(command, timeout=1.5)
        assert result.exit_code in (137, 143, 124), result
        after = box.run("echo $KEPT; pwd; cat /workspace/file")
        assert after.stdout == "1\n/workspace/sub\nx\n", (command, after)


def test_a_restart_needs_nothing_that_the_agent_can_use_up(box: Sandbox) -> None:
    fill = 'python3 -I -c \'for i in range(100000): open(f"{}{{i}}", "w").close()\''
    for name in ("n", "m", "l"):
        box.run(fill.format(name))
        box.run("head -c 100000000 /dev/zero > big; chmod 000 /workspace; kill -9 $$")
        assert box.run("chmod 755 /workspace; cat /workspace/a.txt").stdout == "pristine\n"
    assert len(box.run("ls").stdout) > 0
    box.reset()
    assert box.run("ls").stdout == "a.txt\nsub\n"


def test_a_shell_that_lies_is_only_a_lost_command(box: Sandbox) -> None:
    for command in (
        "printf() { :; }; read() { :; }; declare() { :; }; export -f printf read declare",
        "exec 3>&1; echo '1 0' >&3",
        "for fd in /proc/$$/fd/*; do echo '999 0' > $fd; done 2>/dev/null",
        "echo 'exit 9' > /run/inloop/cmd; rm -f /run/inloop/*; ls /run/inloop > /dev/null",
        "readonly PATH HOME",
    ):
        box.run(command, timeout=2)
        assert box.run("cat /workspace/a.txt").stdout == "pristine\n", command


def test_cpu_time_of_the_episode(box: Sandbox) -> None:
    with checks.opened(limits=replace(checks.SMALL, cpu_seconds=1)) as short:
        result = short.run("while :; do :; done", timeout=20)
        assert result.limit == "cpu" and result.exit_code != 0


def test_wall_time_of_the_episode() -> None:
    with checks.opened(limits=replace(checks.SMALL, wall_seconds=1.0)) as short:
        assert short.run("sleep 30").limit == "wall"
        assert short.run("true").limit == "wall"


def test_a_timed_out_command_takes_its_daemons_and_not_its_neighbours(box: Sandbox) -> None:
    box.run("sleep 1001 & true")
    box.run("(setsid sleep 1002 &); (setsid setsid sleep 1003 &) ; nohup sleep 1004 & sleep 60", timeout=0.6)
    assert box.run("pgrep -a sleep | cut -d' ' -f2-").stdout == "sleep 1001\n"


def test_many_at_once() -> None:
    def work(number: int) -> None:
        with checks.opened() as one:
            for _ in range(3):
                assert one.run(f"echo {number}").stdout == f"{number}\n"
            one.write("f", b"x" * number)
            assert one.run("wc -c < f").stdout.strip() == str(number)

    assert checks.in_threads(32, work) == []


def test_odd_workspaces(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "a.txt").write_text("a")
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)
    (folder / os.fsdecode(b"caf\xe9")).write_text("latin")
    (folder / "secret").write_text("s")
    (folder / "secret").chmod(0)
    (folder / "link").symlink_to("/etc/passwd")
    if os.geteuid() == 0:
        os.mknod(folder / "device", 0o666 | 0o020000, os.makedev(1, 3))
    from inloop.sandbox.bubblewrap import Bubblewrap

    box = Bubblewrap().open(SandboxSpec(workspace=folder, limits=checks.SMALL))
    try:
        assert box.run("cat a.txt").stdout == "a"
        assert box.run("cat caf*").stdout == "latin"
        assert box.run("cat device").exit_code != 0
        assert box.run("chmod 644 secret; cat secret").stdout == "s"
        with pytest.raises(ValueError):
            box.read("pipe")
        with pytest.raises(ValueError):
            box.read("huge")
        box.run("touch caf* pipe huge; mv a.txt b.txt")
        diff = box.diff()
        assert diff.changed == {"b.txt": b"a", "secret": b"s"} or diff.changed == {"b.txt": b"a"}
        assert diff.deleted == ("a.txt",)
    finally:
        box.close()
    assert (folder / "secret").stat().st_mode & 0o777 == 0
