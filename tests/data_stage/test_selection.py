"""What is kept, and the counted reason for the rest."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from data_stage.episodes import episode

from inloop.data.decontaminate import Decontaminate, material
from inloop.data.drops import Drops
from inloop.data.selection import SelectConfig, select
from inloop.tasks.task import Provenance, Task
from inloop.trace.trajectory import Trajectory
from inloop.types import Image, Reward, StopReason, Verdict, message

FREE = SelectConfig(near_duplicates=0)
SENTENCES = (
    "the parser of dates mixes up months and days when the year stands first",
    "a cache forgets what was asked last although it should forget the oldest entry",
    "rounding of money goes up where the rule of bankers wants the even cent",
    "joining of paths leaves two slashes when the left part already ends with one",
    "the tree walk visits a node twice as soon as two parents share one child",
)


def run(trajectories: list[Trajectory], config: SelectConfig = FREE, screens: Any = ()) -> tuple[list[str], Drops]:
    drops = Drops()
    kept = select(trajectories, config, drops, screens)
    drops.kept = len(kept)
    assert drops.faults() == []
    return [t.id for t in kept], drops


def reasons(trajectories: list[Trajectory], **kw: Any) -> dict[str, int]:
    return run(trajectories, dataclasses.replace(FREE, **kw))[1].reasons("trajectory")


def rewarded(name: str, value: float | None, **kw: Any) -> Trajectory:
    trajectory = episode(name, bug=f"a - b - {name}", **kw)
    verdict = Verdict.FAULT if value is None else Verdict.PASSED if value == 1 else Verdict.FAILED
    trajectory.reward = Reward(value=value, verdict=verdict)
    return trajectory


def test_reward_has_to_be_verified() -> None:
    bare = episode("bare", bug="x")
    bare.reward = None
    group = [rewarded("a", 1.0), rewarded("b", 0.0), rewarded("c", None), bare]
    kept, drops = run(group)
    assert kept == ["a"]
    assert drops.reasons("trajectory") == {"no verified reward": 2, "reward below 1": 1}
    assert reasons(group, unscored=True) == {"reward below 1": 1}
    assert reasons(group, min_reward=None) == {}


def test_the_order_in_which_rollouts_ended_changes_nothing() -> None:
    group = [rewarded(name, 1.0) for name in "dbace"]
    twin = dataclasses.replace(group[0], id="z")
    assert run([*group, twin])[0] == run([twin, *reversed(group)])[0] == ["a", "b", "c", "d", "e"]


def test_faults_and_odd_content_never_train() -> None:
    fault, cancelled, picture, empty = (episode(n, bug=n) for n in ("f", "c", "p", "e"))
    fault.stop, cancelled.stop = StopReason.SANDBOX_FAULT, StopReason.CANCELLED
    image = Image(sha256="0" * 64, media_type="image/png")
    picture.nodes[3].message = dataclasses.replace(picture.nodes[3].message, parts=(image,))
    empty.nodes = []
    assert reasons([fault, cancelled, picture, empty], min_reward=None) == {
        "stopped by sandbox_fault": 1,
        "stopped by cancelled": 1,
        "holds an image": 1,
        "no messages": 1,
    }


def test_turns_and_length() -> None:
    short = episode("short", bug="x")
    short.nodes = short.nodes[:3]
    group = [short, episode("long", bug="y")]
    assert reasons(group, min_turns=5) == {"fewer than 5 turns": 1}
    assert reasons(group, max_turns=5) == {"more than 5 turns": 1}
    assert reasons(group, max_characters=100) == {"more than 100 characters": 1}


def test_rights() -> None:
    other = episode("other", bug="x")
    other.meta = {"licence": "GPL-3.0", "teacher": "somebody"}
    group = [episode("ours"), other]
    assert reasons(group, licences=("Apache-2.0",)) == {"licence GPL-3.0 is not allowed": 1}
    assert reasons(group, teachers=("oracle",)) == {"teacher somebody is not allowed": 1}


def test_duplicates() -> None:
    same = [episode("a"), episode("b"), episode("c", bug="quite another bug")]
    assert [t.task_id for t in same] == ["a", "b", "c"]
    same[1].task_id = "a"
    assert reasons(same) == {"duplicate": 1}
    assert reasons(same, duplicates=False) == {}


def test_near_duplicates() -> None:
    group = []
    for i, sentence in enumerate(SENTENCES):
        for copy in (0, 1):
            trajectory = episode(f"t{i}.{copy}", bug=f"{sentence} {' '.join(reversed(sentence.split()))}" * 3)
            group.append(trajectory)
    group[1].nodes[1].message = message("user", group[1].nodes[1].message.text + " please")
    kept, drops = run(group, SelectConfig(near_duplicates=0.7, duplicates=False))
    assert kept == [f"t{i}.0" for i in range(5)]
    assert drops.reasons("trajectory") == {"near-duplicate": 5}


def test_cap_per_task_keeps_the_shortest() -> None:
    group = [episode(f"t{i}", bug=f"{i}", task="one") for i in range(3)] + [episode("other", bug="z")]
    group[0].nodes = group[0].nodes[:11]
    group[2].nodes = group[2].nodes[:9]
    kept, drops = run(group, SelectConfig(near_duplicates=0, per_task=2))
    assert kept == ["other", "t0", "t2"] and drops.reasons("trajectory") == {"more than 2 of one task": 1}


def mixed(**counts: int) -> list[Trajectory]:
    out = []
    for name, count in counts.items():
        for i in range(count):
            out.append(episode(f"{name}{i}", bug=f"{name} {i}"))
            out[-1].meta["source"] = name
    return out


def test_mix_by_weight_draws_down_and_repeats_nothing() -> None:
    group = mixed(web=30, own=10, junk=4)
    config = SelectConfig(near_duplicates=0, mix={"web": 0.5, "own": 0.5})
    kept, drops = run(group, config)
    assert Counter(k.rstrip("0123456789") for k in kept) == {"web": 10, "own": 10}
    assert drops.reasons("trajectory") == {"over its source's share": 24}
    assert run(group, config)[0] == kept and run(group, dataclasses.replace(config, seed=1))[0] != kept


def test_top_sources_and_limit() -> None:
    kept, drops = run(mixed(a=3, b=5, c=1), SelectConfig(near_duplicates=0, top_sources=2, limit=6))
    assert len(kept) == 6 and not any(k.startswith("c") for k in kept)
    assert drops.reasons("trajectory") == {"source not among the top 2": 1, "over the limit of 6": 2}


def task(root: Path, name: str, unit: str, text: str) -> Task:
    folder = root / name
    (folder / "tests").mkdir(parents=True)
    (folder / "solution").mkdir()
    (folder / "tests" / "test_it.py").write_text(f"def test_it():\n    '''{text}'''\n    assert True\n")
    return Task(
        id=name, root=folder, instruction="Mend the function.", provenance=Provenance(builder="hand", unit=unit)
    )


def test_decontamination(tmp_path: Path) -> None:
    secret = " ".join(SENTENCES)
    held_out = [task(tmp_path, "eval-1", "lib.py::f", secret), task(tmp_path, "eval-2", "lib.py::g", "other words")]
    assert secret in material(held_out[0])
    of_task, of_unit, quotes, clean = (episode(n, bug=n) for n in ("eval-1", "train-1", "train-2", "train-3"))
    quotes.nodes[3].message = message("tool", f"# {secret}", call_id="read-1")
    of_unit.meta["unit"], clean.meta["unit"] = "@lib.py::f", "@lib.py::h"
    screen = Decontaminate(held_out)
    kept, drops = run([of_task, of_unit, quotes, clean], FREE, [screen])
    assert kept == ["train-3"]
    assert drops.reasons("trajectory") == {
        "of an evaluation task": 1,
        "of the same source unit as an evaluation task": 1,
        "holds text of an evaluation task": 1,
    }


def test_what_all_evaluation_tasks_share_contaminates_nothing(tmp_path: Path) -> None:
    boilerplate = " ".join(SENTENCES)
    held_out = [task(tmp_path, f"eval-{i}", f"u{i}", f"{boilerplate} {i}") for i in range(3)]
    quotes = episode("train", bug=boilerplate)
    assert run([quotes], FREE, [Decontaminate(held_out)])[0] == ["train"]


@pytest.mark.parametrize("wrong", [{"near_duplicates": 2.0}, {"mix": {"a": -1.0}}, {"mix": {"a": 0.0}}])
def test_values_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"similarity|shares"):
        SelectConfig(**wrong)
