"""A decoy: the hole passes, and nothing that is honest does."""

from __future__ import annotations

from pathlib import Path

import pytest

from inloop.build.decoys import build_decoys
from inloop.build.starter.builder import build_starter
from inloop.errors import TaskError
from inloop.sandbox.base import Diff
from inloop.tasks.taskset import Taskset
from inloop.verify.oracle import oracle_diff
from inloop.verify.verifier import Verifier


def test_only_the_hole_passes(tmp_path: Path) -> None:
    starter = build_starter(tmp_path / "tasks", 3, 0, test_share=0.0, audit=False)
    Taskset.scan(tmp_path / "tasks").save()
    built = build_decoys(tmp_path / "tasks", tmp_path / "decoys", 2)
    assert len(built.tasks) == 2 and not built.dropped
    honest = {t.id: oracle_diff(t) for t in starter.tasks}
    for decoy in Taskset.open(tmp_path / "decoys").tasks():
        assert decoy.card is not None and decoy.card.ok and decoy.verify.mode == "command"
        mended = honest[decoy.id.removeprefix("decoy-")]
        assert Verifier().verify(decoy, mended).value == 0.0
        assert Verifier().verify(decoy, Diff()).value == 0.0
        assert Verifier().verify(decoy, oracle_diff(decoy)).value == 1.0
        original = next(t for t in starter.tasks if t.id == decoy.id.removeprefix("decoy-"))
        assert decoy.instruction == original.instruction  # nothing tells it apart from the task that it was made of


def test_decoys_want_a_starter_set(tmp_path: Path) -> None:
    build_starter(tmp_path / "tasks", 1, 0, test_share=0.9, audit=False)
    Taskset.scan(tmp_path / "tasks").save()
    with pytest.raises(TaskError, match="starter"):
        build_decoys(tmp_path / "tasks", tmp_path / "decoys", 2)
