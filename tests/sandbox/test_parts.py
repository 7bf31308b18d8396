"""The parts that can be tested without a sandbox: the filter, control groups, clipped output, what is plain."""

from __future__ import annotations

import errno
import os
import struct
import sys
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inloop.errors import InloopError, SandboxFault
from inloop.sandbox import cgroup, seccomp, slots
from inloop.sandbox.launch import Bind, Launch, launch
from inloop.sandbox.output import Clip
from inloop.sandbox.shell import is_plain
from inloop.sandbox.tree import relative_path

ALLOWED, KILLED = "allow", "kill"


def verdict(machine: str, number: int, first: int = 0, second: int = 0, *, arch: int | None = None) -> str | int:
    """Run the filter as the kernel would: the error number, or a word."""
    data = struct.pack(
        "IIQQQ", number, seccomp.MACHINES[machine].audit_arch if arch is None else arch, 0, first, second
    )
    raw = seccomp.program(machine)
    code = [struct.unpack_from("HBBI", raw, i) for i in range(0, len(raw), 8)]
    at, register = 0, 0
    while True:
        op, yes, no, value = code[at]
        at += 1
        if op == seccomp.LOAD:
            register = struct.unpack_from("I", data, value)[0]
        elif op == seccomp.RETURN:
            if value == seccomp.ALLOW:
                return ALLOWED
            return KILLED if value == seccomp.KILL else value & 0xFFFF
        else:
            met = {
                seccomp.JUMP_EQUAL: register == value,
                seccomp.JUMP_AT_LEAST: register >= value,
                seccomp.JUMP_SET: bool(register & value),
            }[op]
            at += yes if met else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_decides_each_call(machine: str) -> None:
    m = seccomp.MACHINES[machine]
    for name, numbers in seccomp.DENIED.items():
        if (number := numbers[m.column]) is not None:
            assert verdict(machine, number) == errno.EPERM, name
    assert verdict(machine, m.clone3) == errno.ENOSYS
    assert verdict(machine, m.clone, 17) == ALLOWED and verdict(machine, m.clone, 17 | 0x10000000) == errno.EPERM
    assert verdict(machine, m.clone, 0x80 | 17) == ALLOWED and verdict(machine, m.unshare, 0x80) == errno.EPERM
    assert verdict(machine, m.unshare, 0x200) == ALLOWED and verdict(machine, m.unshare, 0x20000) == errno.EPERM
    for family, wanted in (
        (1, ALLOWED),
        (2, ALLOWED),
        (10, ALLOWED),
        (16, errno.EAFNOSUPPORT),
        (38, errno.EAFNOSUPPORT),
    ):
        assert verdict(machine, m.socket, family) == wanted
    assert verdict(machine, m.ioctl, 0, 0x5412) == errno.EPERM and verdict(machine, m.ioctl, 0, 0x5401) == ALLOWED
    assert verdict(machine, 1, arch=0x40000003) == KILLED
    harmless = {"x86_64": (0, 1, 2, 9, 57, 58, 59, 61, 62, 202), "aarch64": (56, 57, 63, 64, 129, 221, 222, 260)}
    assert {verdict(machine, n) for n in harmless[machine]} == {ALLOWED}
    if machine == "x86_64":
        assert verdict(machine, 0x40000001) == errno.ENOSYS


def mounts_of(tmp_path: Path, *, v2: str = "", v1: bool = False) -> tuple[str, str]:
    """A cgroup file system as its documentation describes it, made of plain files."""
    lines, own = ["proc /proc proc rw 0 0"], []
    if v2:
        unified = tmp_path / "unified"
        (unified / "me").mkdir(parents=True)
        (unified / "me" / "cgroup.controllers").write_text(v2)
        (unified / "me" / "cgroup.subtree_control").write_text(v2)
        (unified / "me" / "cgroup.procs").write_text("")
        lines.append(f"cgroup2 {unified} cgroup2 rw 0 0")
        own.append("0::/me")
    for name in cgroup.V1_CONTROLLERS if v1 else ():
        (tmp_path / name).mkdir()
        lines.append(f"cgroup {tmp_path / name} cgroup rw,{name} 0 0")
        own.append(f"3:{name}:/")
    (tmp_path / "mounts").write_text("\n".join(lines) + "\n")
    (tmp_path / "own").write_text("\n".join(own) + "\n")
    return str(tmp_path / "mounts"), str(tmp_path / "own")


def test_version_2_is_taken_where_it_has_the_controllers(tmp_path: Path) -> None:
    found = cgroup.find(*mounts_of(tmp_path, v2="cpu memory pids", v1=True))
    assert found.kind == "cgroup-v2" and found.parents == {"unified": str(tmp_path / "unified" / "me")}
    group = cgroup.Group(found, "x")
    group.create()
    folder = group.folders["unified"]
    group.limit(100, 20)
    assert (folder / "memory.max").read_text() == str(100 << 20)
    assert (folder / "memory.swap.max").read_text() == "0" and (folder / "pids.max").read_text() == "20"
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (folder / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    (folder / "pids.events").write_text("max 7\n")
    (folder / "memory.peak").write_text(str(5 << 20))
    told = group.counters()
    assert (told.cpu_seconds, told.oom_kills, told.forks_refused, told.peak_mb) == (2.5, 2, 7, 5)
    events = group.events()
    assert events.read() == (2, 7)
    events.close()


def test_version_1_else(tmp_path: Path) -> None:
    found = cgroup.find(*mounts_of(tmp_path, v2="hugetlb", v1=True))
    assert found.kind == "cgroup-v1"
    group = cgroup.Group(found, "x")
    group.create()
    group.limit(100, 20)
    assert (group.folders["memory"] / "memory.limit_in_bytes").read_text() == str(100 << 20)
    assert (group.folders["pids"] / "pids.max").read_text() == "20"


def test_no_groups_is_a_named_weaker_level(tmp_path: Path) -> None:
    found = cgroup.find(*mounts_of(tmp_path, v2="hugetlb"))
    assert found.kind == "rlimits" and "no memory or pids or cpu controller" in found.why
    none = cgroup.find(*mounts_of(tmp_path / "none")) if (tmp_path / "none").mkdir() is None else None
    assert none is not None and (none.kind, none.why) == ("rlimits", "no cgroup file system is mounted")


@given(st.lists(st.binary(max_size=300), max_size=30), st.integers(8, 200))
def test_clips_keep_head_and_tail_and_count_the_rest(chunks: list[bytes], keep: int) -> None:
    clip, whole = Clip(keep), b"".join(chunks)
    for chunk in chunks:
        clip.add(chunk)
    assert clip.total == len(whole) and clip.clipped == (len(whole) > keep)
    if not clip.clipped:
        assert clip.text() == whole.decode("utf-8", "replace")
    else:
        clip.text()
        assert bytes(clip.head) == whole[: keep // 2] and bytes(clip.tail) == whole[-(keep - keep // 2) :]
        assert f"{len(whole) - keep} bytes cut" in clip.text()


def test_only_one_simple_pipeline_is_plain() -> None:
    for command in (
        "true",
        "ls -la /tmp",
        "python -m pytest -q",
        "cat a | grep b | wc -l",
        "cd x && make",
        'grep "a b" *.py',
    ):
        assert is_plain(command), command
    for command in (
        "exit 3", "a; b", "a\nb", "a || b", "a & b", "x=1", "f() { :; }", "for i in a; do b; done", "set -e", ". file",
        "source file", "echo $(x)", "echo `x`", "exec ls", "kill 0", "cat <<E", "trap x EXIT", "echo a#", "a && exit",
    ):  # fmt: skip
        assert not is_plain(command), command


def test_paths_stay_in_the_workspace() -> None:
    assert relative_path("/workspace", "a/./b/../c") == "a/c" == relative_path("/workspace", "/workspace/a/c")
    for path in ("..", "a/../../b", "/etc", "/workspaces/x", "", "a\0b"):
        with pytest.raises(ValueError):
            relative_path("/workspace", path)


def test_uid_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    assert slots.uid_range() == (61000, 61999)
    for wrong in ("0-100", "5", "a-b", "70000-60000"):
        monkeypatch.setenv("INLOOP_UIDS", wrong)
        with pytest.raises(SandboxFault, match="INLOOP_UIDS"):
            slots.uid_range()


def test_where_namespaces_are_forbidden_the_fix_is_named() -> None:
    """A sandbox is such a place: nobody makes namespaces in it."""
    code = (
        "import sys; sys.path.insert(0, '/src')\n"
        "from inloop.sandbox.bubblewrap import Bubblewrap\n"
        "try: Bubblewrap().probe()\n"
        "except Exception as e: print(type(e).__name__, e)\n"
    )
    source = Path(__file__).parents[2] / "src"
    read, write = os_pipe()
    with read, write:
        argv = ("python3", "-B", "-c", code)
        env = {"INLOOP_RUN_DIR": "/tmp/run"}
        mounts = (Bind(source, "/src"),)
        with launch(Launch(argv=argv, mounts=mounts, env=env, fds={1: write.fileno(), 2: write.fileno()})) as job:
            job.wait(60)
            write.close()
            said = read.read().decode()
    assert "SandboxFault" in said and "apparmor_restrict_unprivileged_userns" in said, said


def os_pipe() -> tuple[BinaryIO, BinaryIO]:
    read, write = os.pipe()
    return os.fdopen(read, "rb"), os.fdopen(write, "wb")


def test_launch_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InloopError, match="not there"):
        launch(Launch(argv=("true",), mounts=(Bind(tmp_path / "no", "/x"),)))
    with launch(Launch(argv=("/no/such/program",))) as job:
        assert job.wait(20) != 0
        assert "No such file" in job.complaints


def test_usage_names_the_limit() -> None:
    checks = sys.modules["sandbox_checks"]
    with launch(Launch(argv=("python3", "-I", "-c", "x = bytearray(600 << 20)"), limits=checks.SMALL)) as job:
        assert job.wait(20) != 0
    if job.isolation.limits != "rlimits":
        assert job.usage().met == "memory"
    with launch(Launch(argv=("sleep", "60"))) as job:
        assert job.wait(0.1) is None
        job.kill(deadline=True)
        assert job.usage().met == "wall" and job.wait(1) is not None
