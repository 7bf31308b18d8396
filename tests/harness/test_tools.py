from __future__ import annotations

import pytest

from inloop.errors import SandboxFault
from inloop.harness.config import HarnessConfig
from inloop.harness.sensors import sense
from inloop.harness.tools import Toolbox, replace_once
from inloop.sandbox.base import Sandbox
from inloop.tasks.task import Task


@pytest.fixture
def tools(task: Task, sandbox: Sandbox) -> Toolbox:
    return Toolbox(task, sandbox, HarnessConfig(observation_chars=400))


def test_read_edit_write_test(tools: Toolbox) -> None:
    assert tools.call("read", {"path": "calc.py"}).text == "def add(a, b):\n    return a - b"
    assert tools.call("read", {"path": "/workspace/calc.py", "start": 2, "end": 2}).text == "    return a - b"
    failing = tools.call("test", {})
    assert failing.tests_failed and failing.kind == "tests" and "is not 5" in failing.text
    edited = tools.call("edit", {"path": "./calc.py", "old": "a - b", "new": "a + b"})
    assert (edited.text, edited.edited, edited.is_error) == ("ok", "calc.py", False)
    assert tools.call("test", {}).text == "fine"
    assert tools.call("write", {"path": "new/x.txt", "content": "höh\n"}).edited == "new/x.txt"
    assert tools.call("bash", {"command": "cat new/x.txt"}).text == "höh"
    assert tools.call("submit", {}).submitted


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read", {"path": "nope.py"}, "no file nope.py"),
        ("read", {"path": "."}, "folder"),
        ("read", {"path": "../../etc/passwd"}, "error"),
        ("read", {"path": "/etc/passwd"}, "error"),
        ("read", {"path": "calc.py", "start": 9, "end": 10}, "2 lines"),
        ("edit", {"path": "calc.py", "old": "return b", "new": "x"}, "no such text in calc.py"),
        ("edit", {"path": "calc.py", "old": "    return a-b", "new": "x"}, "nearest line:\n    return a - b"),
        ("edit", {"path": "calc.py", "old": "a", "new": "x"}, "places match"),
        ("edit", {"path": "calc.py", "old": "", "new": "x"}, "nothing to look for"),
        ("edit", {"path": "calc.py", "old": "a - b", "new": "a - b"}, "the same"),
        ("edit", {"path": "nope.py", "old": "a", "new": "x"}, "no file"),
        ("write", {"path": "calc.py/x", "content": ""}, "error"),
        ("bash", {"command": "exit 3"}, "exit 3"),
        ("write", {"path": "x" * 300, "content": ""}, "failed"),
        ("edit", {"path": "calc.py", "old": "a - b", "new": "\ud800"}, "failed"),
        ("read", {"path": ""}, "folder"),
        ("bash", {"command": "nonsense_command"}, "exit 127"),
    ],
)  # fmt: skip
def test_failures_are_observations(tools: Toolbox, name: str, arguments: dict[str, object], words: str) -> None:
    observation = tools.call(name, arguments)
    assert observation.is_error and observation.valid and not observation.edited
    assert words in observation.text
    assert tools.call("read", {"path": "calc.py"}).text == "def add(a, b):\n    return a - b"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("fly", {}, "no tool 'fly'"), ("read", None, "can't be read"), ("read", {}, "path is missing"),
        ("read", {"path": 3}, "must be text"), ("read", {"path": "a", "start": "1"}, "whole number"),
        ("read", {"path": "a", "start": True}, "whole number"), ("read", {"path": "a\0b"}, "NUL"),
        ("test", {"verbose": True}, "no 'verbose'"),
    ],
)  # fmt: skip
def test_invalid_calls_are_told_how(tools: Toolbox, name: str, arguments: dict[str, object], words: str) -> None:
    observation = tools.call(name, arguments)
    assert observation.is_error and not observation.valid
    assert words in observation.text


def test_megabytes_and_binary(tools: Toolbox) -> None:
    loud = tools.call("bash", {"command": "seq 1 2000000"}).text
    assert len(loud) < 500 and loud.startswith("1\n2\n") and loud.endswith("2000000") and "cut" in loud
    assert tools.call("bash", {"command": "head -c 9999 /dev/urandom"}).text.startswith("[binary output, about ")
    tools.call("bash", {"command": "head -c 100 /dev/zero > z.bin"})
    assert tools.call("read", {"path": "z.bin"}).text == "error: z.bin is binary, 100 bytes"
    assert tools.call("edit", {"path": "z.bin", "old": "a", "new": "b"}).text == "error: z.bin is binary"
    assert tools.call("read", {"path": "empty"}).is_error
    tools.call("write", {"path": "empty", "content": ""})
    assert tools.call("read", {"path": "empty"}).text == "(empty file)"


def test_hostile_files_do_not_hold_the_host_up(tools: Toolbox, sandbox: Sandbox) -> None:
    sandbox.write("long.txt", b"ab" * 2_000_000)
    assert tools.call("edit", {"path": "long.txt", "old": "ba" * 50_000 + "c", "new": "x"}).is_error
    assert len(tools.call("read", {"path": "long.txt"}).text) < 500
    tools.call("bash", {"command": "mkfifo pipe; ln -s /etc/passwd link"})
    assert tools.call("read", {"path": "pipe"}).is_error and tools.call("read", {"path": "link"}).is_error


def test_a_command_is_cut_off_by_what_the_episode_has_left(task: Task, sandbox: Sandbox) -> None:
    tools = Toolbox(task, sandbox, HarnessConfig(), remaining=lambda: 0.5)
    observation = tools.call("bash", {"command": "sleep 30"})
    assert observation.is_error and "wall limit" in observation.text


def test_a_broken_sandbox_raises(tools: Toolbox, sandbox: Sandbox) -> None:
    sandbox.close()
    with pytest.raises(SandboxFault):
        tools.call("bash", {"command": "true"})


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("a\nb\nc\n", "b", "x\ny", "a\nx\ny\nc\n"), ("a\nb\nc\n", "b", "", "a\nc\n"), ("a\nb", "b", "", "a\n"),
        ("a b c\n", " b", "", "a c\n"), ("a\n", "a\n", "", ""),
    ],
)  # fmt: skip
def test_replace_once(text: str, old: str, new: str, after: str) -> None:
    assert replace_once(text, old, new).text == after


def test_bytes_that_are_not_utf8_survive_an_edit(tools: Toolbox, sandbox: Sandbox) -> None:
    sandbox.write("latin.py", b"# caf\xe9 and enough text around it\nx = 1\n")
    assert tools.call("edit", {"path": "latin.py", "old": "x = 1", "new": "x = 2"}).text == "ok"
    assert sandbox.read("latin.py") == b"# caf\xe9 and enough text around it\nx = 2\n"


def test_sensors(task: Task, sandbox: Sandbox) -> None:
    config = HarnessConfig(sensors=("syntax", "ruff", "tests"))
    tools = Toolbox(task, sandbox, config)
    sandbox.write("calc.py", b"def add(a, b:\n")
    found = sense(tools, "calc.py")
    assert [f.sensor for f in found] == ["syntax"] and "line 1" in found[0].text
    sandbox.write("calc.py", b"import os\n\n\ndef add(a, b):\n    return a + b\n")
    found = sense(tools, "calc.py")
    assert found[0].text == "" and found[2].text == "tests: fine" and not found[2].tests_failed
    assert "F401" in found[1].text or found[1].text == "ruff is not there"
    assert [f.text for f in sense(tools, "notes.txt")][:2] == ["", ""]
