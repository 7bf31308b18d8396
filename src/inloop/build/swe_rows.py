"""SWE-bench-shaped rows: built from a local clone where there is one, else a folder that names the image it needs."""

from __future__ import annotations

import random
import re
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inloop.build.draft import Draft, Drop, assemble, divide
from inloop.build.git import Repository
from inloop.build.rows import ids, solution_of, task_id, text
from inloop.build.source import Tree, is_test_file, licence_of, with_metadata
from inloop.build.suite import Job, lab
from inloop.build.testsplit import file_of, function_of
from inloop.errors import TaskError
from inloop.sandbox.base import Diff
from inloop.tasks.folder import write_files, write_task
from inloop.tasks.task import Limits, Provenance, Task, VerifySpec
from inloop.verify.oracle import apply_patch

SECONDS = 300.0
IMAGE = re.compile(r"[A-Za-z0-9][\w./:@+-]*")


@dataclass(frozen=True)
class Instance:
    id: str
    repo: str
    base: str
    """Commit; '' for the head of the repository."""
    instruction: str
    patch: str
    test_patch: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    image: str
    licence: str

    @property
    def introduces(self) -> bool:
        """SWE-smith: the patch puts the bug in, and its tests are part of the repository."""
        return not self.test_patch and not self.base


def instance(row: Mapping[str, Any]) -> Instance:
    """Raises Drop when the row lacks what a task needs."""
    fails = ids(row, "FAIL_TO_PASS", "fail_to_pass", "F2P")
    statement = text(row, "problem_statement", "prompt", "instruction", "issue")
    if not fails:
        raise Drop("the row names no FAIL_TO_PASS tests")
    if not statement.strip():
        raise Drop("the row has no problem statement")
    return Instance(
        id=str(row["instance_id"]),
        repo=text(row, "repo", "repository"),
        base=text(row, "base_commit"),
        instruction=statement.strip() + "\n",
        patch=solution_of(row),
        test_patch=text(row, "test_patch"),
        fail_to_pass=tuple(fails),
        pass_to_pass=tuple(ids(row, "PASS_TO_PASS", "pass_to_pass", "P2P")),
        image=text(row, "image_name", "docker_image", "image"),
        licence=text(row, "license_name", "license"),
    )


def clone_of(repos: Path | None, repo: str) -> Path | None:
    """The folder of a clone: REPOS/owner__name, REPOS/owner/name or REPOS/name, bare or not."""
    if repos is None or not repo:
        return None
    owner, _, name = repo.partition("/")
    names = (f"{owner}__{name}", f"{owner}/{name}", name, f"{owner}__{name}.git", f"{name}.git")
    return next((repos / n for n in names if n and (repos / n).is_dir()), None)


def write_instance(found: Instance, out: Path, repos: Path | None, origin: Provenance, seed: int) -> Task:
    """Raises Drop with the reason when it can be made neither here nor for docker."""
    clone = clone_of(repos, found.repo)
    if clone is not None:
        return _local(found, clone, out, origin, seed)
    if not found.image:
        raise Drop("names no docker image, and no clone of its repository is in --repos")
    return _for_docker(found, out, origin)


def _local(found: Instance, clone: Path, out: Path, origin: Provenance, seed: int) -> Task:
    try:
        with Repository.open(str(clone)) as repository:
            commit = found.base or repository.head()
            files, _ = repository.files(commit)
    except TaskError as error:
        raise Drop(f"the clone lacks its commit: {error.message[:80]}") from None
    base = with_metadata(Tree(found.repo, commit, files, found.licence or licence_of(files)))
    good, broken = _sides(found, base)
    failing, passing, every = _judge(found, good, broken)
    gone = frozenset(p for p in good.files if p not in broken and not is_test_file(p))
    changed = {p: d for p, d in broken.items() if good.files.get(p) != d and not is_test_file(p)}
    draft = Draft(
        id=task_id(found.id),
        tree=good,
        broken=changed,
        failing=failing,
        passing=passing,
        all_ids=frozenset(every),
        unusable=frozenset(),
        provenance=origin,
        gone=gone,
    )
    return assemble(draft, out, found.instruction, divide(draft, random.Random(f"{seed}:{found.id}")))


def _sides(found: Instance, base: Tree) -> tuple[Tree, dict[str, bytes]]:
    """(the tree with solution and tests, the files that the agent starts from with the tests of the solution)."""
    if found.introduces:
        return base, _patched(base.files, found.patch)
    tested = _patched(base.files, found.test_patch) if found.test_patch else dict(base.files)
    return Tree(base.name, base.version, _patched(tested, found.patch), base.licence), tested


def _patched(files: Mapping[str, bytes], patch: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="inloop-import-") as temporary:
        write_files(Path(temporary), dict(files))
        try:
            diff: Diff = apply_patch(patch, Path(temporary))
        except TaskError as error:
            raise Drop(f"its patch does not apply: {error.message.splitlines()[0][:80]}") from None
    return {p: d for p, d in (dict(files) | diff.changed).items() if p not in diff.deleted}


def _judge(found: Instance, good: Tree, broken: Mapping[str, bytes]) -> tuple[Any, Any, set[str]]:
    """(failing, passing, every id that passes on the solution), from running the row's tests on both sides."""
    wanted = {function_of(i) for i in (*found.fail_to_pass, *found.pass_to_pass)}
    files = tuple(sorted({file_of(i) for i in found.fail_to_pass} & good.files.keys()))
    if not files:
        raise Drop("its FAIL_TO_PASS tests are no pytest ids of files in the repository")
    runs = []
    for tree in (Tree(good.name, good.version, dict(broken)), good):
        with lab(tree, f"import {found.id}") as place:
            runs.append(place.run([Job("run", files, {}, SECONDS)]).get("run"))
    before, after = runs
    if after is None or before is None:
        raise Drop("its tests run for ever or are killed")
    every = {i for i, t in after.tests.items() if t.outcome == "passed"}
    failing = [t for i, t in before.tests.items() if i in every and t.outcome != "passed" and function_of(i) in wanted]
    if not failing:
        raise Drop("its FAIL_TO_PASS tests do not fail before and pass after in this environment")
    passing = [t for i, t in before.tests.items() if i in every and t.outcome == "passed" and function_of(i) in wanted]
    return tuple(failing), tuple(passing), every


def _for_docker(found: Instance, out: Path, origin: Provenance) -> Task:
    """A folder that Harbor can run on a machine with docker; here it can only be listed."""
    if not IMAGE.fullmatch(found.image):
        raise Drop("the name of its docker image is odd")
    tests = shlex.join((*found.fail_to_pass, *found.pass_to_pass))
    apply = "" if found.introduces else "git apply /tests/test.patch\n"
    script = (
        "#!/bin/bash\nmkdir -p /logs/verifier\ncd /testbed\n"
        f"{apply}python -m pytest -q {tests}\n"
        "if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
    )
    flag = " -R" if found.introduces else ""
    solve = f"#!/bin/bash\nset -e\ncd /testbed\ngit apply{flag} /solution/patch.diff\n"
    name = task_id(found.id)
    task = Task(
        id=name,
        root=out / name,
        instruction=found.instruction,
        limits=Limits(wall_seconds=3600.0, memory_mb=4096),
        verify=VerifySpec(
            mode="command", command=("bash", "/tests/test.sh"), allow=("**",), twins=False, wall_seconds=1800.0
        ),
        provenance=origin,
        image=found.image,
        meta={"needs": f"docker image {found.image}"},
    )
    files = {"test.sh": script} | ({"test.patch": found.test_patch} if found.test_patch else {})
    return write_task(
        task,
        workspace={},
        tests=files,
        solution={"patch.diff": found.patch, "solve.sh": solve},
        dockerfile=f"FROM {found.image}\nWORKDIR /testbed\n",
    )
