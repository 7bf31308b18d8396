"""Decontamination: what one split, or an evaluation set, shares with another is found by n-grams and blocked.

Candidates come from datasketch's MinHash LSH Ensemble (containment); each is then compared exactly."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from inloop.errors import InloopError, TaskError
from inloop.files import BadLine, read_json_lines
from inloop.progress import bar
from inloop.tasks.task import Task
from inloop.tasks.taskset import INDEX, Taskset

Scope = Literal["unit", "workspace"]
N = 8
"""Words of an n-gram."""
MIN_GRAMS = 12
"""Shorter texts are compared whole, not by n-grams."""
THRESHOLD = 0.6
"""Share of the smaller text's n-grams that the other one holds."""
PERMUTATIONS = 128
MAX_FILE = 1 << 20
WORD = re.compile(r"[A-Za-z_]\w*|\d+|[^\w\s]")


@dataclass(frozen=True)
class Document:
    owner: str
    """Task or evaluation row."""
    part: str
    """'instruction', or the path of a file."""
    grams: frozenset[bytes] = field(repr=False)

    def overlap(self, other: Document) -> float:
        """Share of the smaller one's n-grams that are in both."""
        return len(self.grams & other.grams) / max(1, min(len(self.grams), len(other.grams)))


@dataclass(frozen=True)
class Overlap:
    left: str
    right: str
    left_part: str
    right_part: str
    share: float


def grams(text: str) -> frozenset[bytes]:
    """Hashes of the text's word n-grams; of the whole text when it has too few words for that."""
    words = WORD.findall(text.lower())
    if len(words) < N + MIN_GRAMS:
        return frozenset([_hash(" ".join(words))]) if words else frozenset()
    return frozenset(_hash(" ".join(words[i : i + N])) for i in range(len(words) - N + 1))


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def documents(task: Task, scope: Scope) -> list[Document]:
    """Instruction and code of a task: the files that the solution changes ('unit'), or all of its Python files.

    Of a changed file, a 'unit' is the part around the change: neighbours in a file are other units."""
    out = [Document(task.id, "instruction", grams(task.instruction))]
    for path, text in _code(task, scope):
        if found := grams(text):
            out.append(Document(task.id, path, found))
    return out


def _code(task: Task, scope: Scope) -> Iterator[tuple[str, str]]:
    if scope == "unit":
        yield from _patched(task)
        return
    for path in sorted(task.workspace.rglob("*.py")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE:
            yield path.relative_to(task.workspace).as_posix(), path.read_text("utf-8", "replace")


def _patched(task: Task) -> Iterator[tuple[str, str]]:
    """Each function that a hunk of the solution lies in, or the hunk with its context where it lies in none."""
    patch = task.solution / "patch.diff"
    text = patch.read_text("utf-8", "replace") if patch.is_file() else ""
    path = ""
    for block in re.split(r"^(?=--- |@@ )", text, flags=re.M):
        if header := re.search(r"^\+\+\+ (?:b/)?(.+)$", block, re.M):
            path = header[1].split("\t")[0]
        if block.startswith("@@ "):
            lines = block.splitlines()[1:]
            before = [line[1:] for line in lines if line[:1] in " -"]
            yield path, "\n".join(_around(task.workspace / path, before) or [line[1:] for line in lines])


def _around(file: Path, hunk: Sequence[str]) -> list[str]:
    """Lines of the block of `def` that holds the hunk."""
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    size = len(hunk)
    at = next((i for i in range(len(lines) - size + 1) if lines[i : i + size] == list(hunk)), None)
    if at is None:
        return []
    middle = at + size // 2
    first = next((i for i in range(middle, -1, -1) if re.match(r"\s*(async )?def ", lines[i])), at)
    indent = len(lines[first]) - len(lines[first].lstrip())
    last = next(
        (i for i in range(first + 1, len(lines)) if lines[i].strip() and _indent(lines[i]) <= indent and i > middle),
        len(lines),
    )
    return lines[first:last]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def find_overlaps(left: Sequence[Document], right: Sequence[Document], threshold: float = THRESHOLD) -> list[Overlap]:
    """Pairs of the two sides whose overlap is at least `threshold`; the greatest first."""
    out = {}
    for a, b in _candidates(left, right, threshold):
        if a.owner != b.owner and (share := a.overlap(b)) >= threshold:
            out[a.owner, b.owner, a.part, b.part] = Overlap(a.owner, b.owner, a.part, b.part, round(share, 3))
    return sorted(out.values(), key=lambda o: (-o.share, o.left, o.right))


def _candidates(
    left: Sequence[Document], right: Sequence[Document], threshold: float
) -> Iterator[tuple[Document, Document]]:
    """Pairs worth an exact look: either side is looked up among the other, as the smaller text may be on any.

    The ensemble is asked for less than the threshold, since it estimates."""
    ensemble = _ensemble()
    for asked, indexed, swap in ((left, right, False), (right, left, True)):
        if not asked or not indexed:
            return
        index = ensemble(threshold=max(0.1, threshold - 0.25), num_perm=PERMUTATIONS, num_part=8)
        index.index([(n, _minhash(d), len(d.grams)) for n, d in enumerate(indexed)])
        with bar("compare", len(asked)) as progress:
            for document in asked:
                for n in index.query(_minhash(document), len(document.grams)):
                    yield (indexed[n], document) if swap else (document, indexed[n])
                progress.step()


def _ensemble() -> Any:
    try:
        from datasketch import MinHashLSHEnsemble
    except ImportError:
        raise InloopError("the overlap check needs datasketch", fix="pip install 'inloop[data]'") from None
    return MinHashLSHEnsemble


def _minhash(document: Document) -> Any:
    from datasketch import MinHash

    out = MinHash(num_perm=PERMUTATIONS, seed=1)
    out.update_batch(sorted(document.grams))
    return out


@dataclass
class Decontamination:
    overlaps: list[Overlap]
    blocked: dict[str, str]
    """Task id -> why it may not be used where it is."""
    counts: Counter[str]


def decontaminate(
    tasks: Iterable[Task], evaluation: Sequence[Document] = (), *, scope: Scope = "unit", held_out: str = "test",
    threshold: float = THRESHOLD,
) -> Decontamination:  # fmt: skip
    """Tasks of other splits that overlap with the held-out split are blocked, and any that overlap with `evaluation`.

    With 'unit', the code compared across splits is the function under repair; evaluation sets are always compared with
    whole workspaces."""
    by_split: dict[str, list[Document]] = defaultdict(list)
    whole: list[Document] = []
    for task in tasks:
        by_split[task.split].extend(documents(task, scope))
        whole += documents(task, "workspace") if evaluation else []
    training = [d for name, found in by_split.items() if name != held_out for d in found]
    across = find_overlaps(training, by_split.get(held_out, []), threshold)
    against = find_overlaps(whole, evaluation, threshold)
    blocked = {o.left: f"overlaps with {o.right} of {held_out} ({o.left_part}, {o.share:.0%})" for o in across}
    blocked |= {o.left: f"overlaps with evaluation row {o.right} ({o.left_part}, {o.share:.0%})" for o in against}
    counts = Counter({f"overlap with the {held_out} split": len({o.left for o in across})})
    counts["overlap with an evaluation set"] = len({o.left for o in against})
    return Decontamination([*across, *against], blocked, +counts)


TEXT_KEYS = ("problem_statement", "instruction", "prompt", "text", "question", "description")
CODE_KEYS = ("patch", "canonical_solution", "code", "solution", "test", "test_patch")


def evaluation_documents(path: Path) -> list[Document]:
    """Documents of an evaluation set: a taskset, or a JSONL file of rows (SWE-bench, HumanEval or MBPP shape).

    Raises TaskError when nothing in it can be compared."""
    if path.is_dir() or path.name == INDEX:
        tasks = Taskset.open(path if path.is_dir() else path.parent)
        return [d for t in tasks.tasks() for d in documents(t, "workspace")]
    if not path.is_file():
        raise TaskError(f"{path}: no such file or folder", fix="give a taskset or a JSONL file")
    bad: list[BadLine] = []
    out = [d for number, row in read_json_lines(path, bad) for d in _of_row(row, f"{path.name}:{number}")]
    if bad or not out:
        raise TaskError(
            f"{path}{f':{bad[0].line}: {bad[0].reason}' if bad else ': no text that can be compared'}",
            fix="one JSON object a line with one of " + ", ".join(TEXT_KEYS),
        )
    return out


def _of_row(row: Mapping[str, Any], where: str) -> Iterator[Document]:
    if not isinstance(row, Mapping):
        return
    owner = next((str(row[k]) for k in ("instance_id", "task_id", "id") if k in row), where)
    for key in (*TEXT_KEYS, *CODE_KEYS):
        if isinstance(row.get(key), str) and (found := grams(re.sub(r"^[+ -]", "", row[key], flags=re.M))):
            yield Document(f"{owner}", key, found)
