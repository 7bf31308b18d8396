"""`import`: tasks that others made, from dataset rows or Harbor folders; what can't be made or run is counted."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from inloop.build import function_rows, swe_rows
from inloop.build.audit import Auditor
from inloop.build.draft import Drop
from inloop.build.rows import Row, read_rows, shape
from inloop.build.run import FOLDER, Report, merge_index
from inloop.errors import Fault, TaskError
from inloop.files import BadLine, locked, write_json
from inloop.progress import bar
from inloop.tasks.folder import load_task
from inloop.tasks.task import Provenance, Task
from inloop.tasks.taskset import row_of


@dataclass
class Import:
    out: Path
    auditor: Auditor
    repos: Path | None = None
    seed: int = 0
    tasks: list[Task] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)
    needs: Counter[str] = field(default_factory=Counter)
    """Tasks that were written, but that this machine can't run without docker."""

    def row(self, row: Row, source: str) -> None:
        """Make a task of one row, or count why not."""
        try:
            task = self._made(row, source)
            if task.image:
                self.needs["needs docker (kept, not audited)"] += 1
            else:
                task = self.auditor.admit(task)
            self.tasks.append(task)
        except Drop as drop:
            self.drops[str(drop)] += 1
        except Fault as fault:
            self.drops[f"fault: {fault.message.splitlines()[0][:100]}"] += 1

    def _made(self, row: Row, source: str) -> Task:
        kind = shape(row)
        origin = Provenance(builder="import", repository=source, seed=self.seed, kind=kind)
        if kind == "humaneval":
            problem = function_rows.humaneval(row)
        elif kind == "mbpp":
            problem = function_rows.mbpp(row)
        elif kind == "swe":
            found = swe_rows.instance(row)
            origin = replace(origin, repository=found.repo, commit=found.base, licence=found.licence, unit=found.id)
            return swe_rows.write_instance(found, self.out, self.repos, origin, self.seed)
        else:
            raise Drop("of no known shape (SWE-bench, HumanEval, MBPP)")
        return function_rows.write_problem(problem, self.out, replace(origin, unit=problem.id))

    def folder(self, folder: Path) -> None:
        """Copy a Harbor task folder; links in it are left out."""
        try:
            loaded = load_task(folder)
        except TaskError as error:
            self.drops[f"not a usable Harbor folder: {error.message.splitlines()[0][:120]}"] += 1
            return
        target = self.out / loaded.id
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target, symlinks=True, ignore=_links)
        task = load_task(target)
        if task.image:
            self.needs["needs docker (kept, not audited)"] += 1
            self.tasks.append(task)
            return
        try:
            self.tasks.append(self.auditor.admit(task))
        except Drop as drop:
            self.drops[str(drop)] += 1


def _links(folder: str, names: list[str]) -> list[str]:
    return [n for n in names if (Path(folder) / n).is_symlink()]


def import_tasks(
    source: Path, out: Path, *, repos: Path | None = None, limit: int | None = None, seed: int = 0, audit: bool = True
) -> Report:
    """Import a JSONL or parquet file of rows, or a folder of Harbor tasks. Raises TaskError when it is neither."""
    started = time.monotonic()
    doing = Import(out, Auditor(audit), repos, seed)
    bad: list[BadLine] = []
    with locked(out / FOLDER, f"import {source}"), bar(f"import {source.name}", limit) as progress:
        for _ in _each(doing, source, limit, bad):
            progress.step(note=f"{len(doing.tasks)} made, {sum(doing.drops.values())} dropped")
        doing.drops.update(Counter(f"line is not usable: {b.reason.split(':')[0]}" for b in bad))
        if not doing.tasks and not doing.drops:
            raise TaskError(f"{source}: no rows and no task folders in it", fix="give a JSONL or parquet file")
        rows = [row_of(t, out) for t in doing.tasks]
        merge_index(out, rows)
        report = Report(
            out=out,
            name=f"import-{source.stem}",
            kept=[t.id for t in doing.tasks],
            drops=doing.drops,
            skipped=doing.needs,
            tried=len(doing.tasks) + sum(doing.drops.values()),
            seconds=time.monotonic() - started,
            fresh=len(doing.tasks),
        )
        write_json(out / FOLDER / f"{report.name}.drops.json", report.as_json())
    return report


def _each(doing: Import, source: Path, limit: int | None, bad: list[BadLine]) -> Iterator[None]:
    if source.is_dir():
        folders = [source] if (source / "task.toml").is_file() else sorted(p.parent for p in source.glob("*/task.toml"))
        if not folders:
            raise TaskError(f"{source}: no Harbor task folders in it", fix="give a folder of folders with task.toml")
        for folder in folders[:limit]:
            doing.folder(folder)
            yield
        return
    for number, (_, row) in enumerate(read_rows(source, bad)):
        if limit is not None and number >= limit:
            return
        doing.row(row, source.stem)
        yield
