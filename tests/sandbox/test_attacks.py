"""What an agent may try, each attempt beside a control that shows that the check can fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

checks = sys.modules["sandbox_checks"]


@pytest.fixture(scope="module")
def aim() -> Iterator[dict[str, object]]:
    with checks.targets() as found:
        yield found


@pytest.fixture(scope="module")
def inside() -> Iterator[object]:
    with checks.opened() as box:
        yield box


@pytest.fixture(scope="module")
def outside() -> Iterator[object]:
    with checks.unisolated() as box:
        yield box


@pytest.mark.parametrize("probe", checks.PROBES, ids=lambda p: p.name)
def test_what_is_shut(probe: object, inside: object, outside: object, aim: dict[str, object]) -> None:
    assert checks.ask(probe, inside, aim) == "SHUT"
    control = checks.ask(probe, outside, aim)
    if control == "SHUT" and ((probe.as_root and os.geteuid()) or probe.name in FORBIDDEN_TO_ALL):
        pytest.skip("this machine forbids it to everybody: the control shows nothing")
    assert control == "OPEN"


FORBIDDEN_TO_ALL = {
    "nested user namespaces", "keys of the kernel", "ptrace", "io_uring", "settings of the kernel", "mounting",
    "network interfaces", "new privileges by setuid programs", "capabilities",
}  # fmt: skip
"""In a container, some of these are shut around the tests themselves."""


@pytest.mark.parametrize("attack", checks.ATTACKS, ids=lambda a: a.name)
def test_what_uses_things_up(attack: object, box: object) -> None:
    checks.endure(attack, box)
    box.close()
    assert checks.left_of(box) == []


def test_limits_are_not_met_by_honest_work(box: object) -> None:
    """The control of the limits: the same commands within bounds meet none."""
    write = "for i in 1 2 3; do head -c 1000000 /dev/zero > f$i; done"
    result = box.run(f"{write}; seq 100; python3 -I -c 'bytearray(1 << 20)'")
    assert (result.exit_code, result.limit, result.clipped) == (0, "", False)


def test_sandboxes_do_not_see_each_other(box: object) -> None:
    serve = """python3 -I -c '
import socket, time
a = socket.socket(); a.bind(("127.0.0.1", 5555)); a.listen()
b = socket.socket(socket.AF_UNIX); b.bind("\\0inloop-neighbour"); b.listen()
time.sleep(60)' & sleep 1"""
    knock = """python3 -I -c '
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", 5555)), (socket.AF_UNIX, "\\0inloop-neighbour")):
    try: socket.socket(family).connect(address); print("OPEN")
    except OSError: print("SHUT")'"""
    box.run(serve)
    with checks.opened() as other:
        assert other.run(knock).stdout.split() == ["SHUT", "SHUT"]
        box.run("echo mine > /tmp/x; echo mine > /dev/shm/x")
        assert other.run("cat /tmp/x /dev/shm/x").exit_code == 1
    assert box.run(knock).stdout.split() == ["OPEN", "OPEN"], "the control: the services are there"


def test_links_lead_nowhere(box: object) -> None:
    box.run("ln -s /etc/passwd out; ln -s / root; ln -s a.txt fine; ln -s ../../../../etc/hostname up; mkfifo pipe")
    assert box.read("fine") == b"pristine\n"
    for path in ("out", "root/etc/passwd", "up", "pipe", "../etc/passwd", "/etc/passwd"):
        with pytest.raises(ValueError):
            box.read(path)
    with pytest.raises(ValueError):
        box.write("root/tmp/x", b"")
    diff = box.diff()
    assert not diff.changed and {p for p, _ in diff.rejected} == {"out", "root", "fine", "up", "pipe"}
    upper = box._launched.upper
    assert (upper / "out").read_bytes(), "the control: a reader that follows links reads a file of the host"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each sandbox a uid of its own")
def test_each_sandbox_has_a_uid_of_its_own(box: object) -> None:
    with checks.opened() as other:
        uids = {b._launched.slot.uid for b in (box, other)}
        assert len(uids) == 2 and 0 not in uids
        for b in (box, other):
            for pid in b._launched.group.pids():
                status = Path(f"/proc/{pid}/status").read_text()
                assert b"bwrap" not in checks._command(pid) or f"Uid:\t{b._launched.slot.uid}" in status


def test_the_pristine_workspace_is_never_changed(box: object) -> None:
    box.run("echo evil >> a.txt; chmod 777 a.txt; rm -r sub; touch new; setfattr -n user.x -v y a.txt 2>/dev/null")
    pristine = box.spec.workspace
    assert (pristine / "a.txt").read_text() == "pristine\n"
    assert sorted(p.name for p in pristine.rglob("*")) == ["a.txt", "b.txt", "sub"]
