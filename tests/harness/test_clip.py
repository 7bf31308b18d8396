from __future__ import annotations

from inloop.harness.clip import clip, is_binary, printable, summarize_tests


def test_clip_keeps_head_and_tail_and_says_what_it_cut() -> None:
    text = "".join(f"line {i}\n" for i in range(10_000))
    cut = clip(text, 900)
    assert len(cut) < 960
    assert cut.startswith("line 0\n") and cut.endswith("line 9999\n")
    said = int(cut.split("[... ")[1].split(" ")[0])
    kept = len(cut) - len(f"\n[... {said} characters cut ...]\n")
    assert said + kept == len(text)
    assert clip("short", 900) == "short"


def test_binary_is_named_not_shown() -> None:
    assert printable("\x00\x01ELF") == "[binary output, about 5 bytes]"
    assert "binary" in printable("\ufffd" * 50)
    assert is_binary(bytes(range(256))) and not is_binary("höher\n".encode())
    assert not is_binary(b"")


def test_terminal_codes_and_control_characters_go() -> None:
    assert printable("\x1b[31mred\x1b[0m \x07bell\r\nend") == "red bell\nend"
    assert printable("10 %\r50 %\r100 %\n") == "100 %\n"


PYTEST = """F.
=================================== FAILURES ===================================
___________________________________ test_a ____________________________________
E       AssertionError: assert 'a b' == 'a-b'
=========================== short test summary info ============================
FAILED test_slug.py::test_a - AssertionError: assert 'a b' == 'a-b'
1 failed, 1 passed in 0.03s
"""


def test_pytest_output_becomes_a_line_a_failure() -> None:
    assert summarize_tests(PYTEST, False) == "test_slug.py::test_a - AssertionError: assert 'a b' == 'a-b'"
    assert summarize_tests("..\n2 passed in 0.01s\n", True) == "passed"


def test_other_output_is_left_alone() -> None:
    assert summarize_tests("exit 2\nmake: *** no rule", False) == "exit 2\nmake: *** no rule"
    assert summarize_tests("all good", True) == "all good"
    many = "".join(f"FAILED t.py::t{i} - x\n" for i in range(30))
    assert summarize_tests(many, False).endswith("and 20 more")


def test_hostile_test_output_is_read_in_linear_time() -> None:
    for hostile in ("1 " + "1" * 60 + " ", "\n" * 16_000, "=" * 16_000, "1 a, " * 3_000):
        summarize_tests(hostile * 3, True)
