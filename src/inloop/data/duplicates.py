"""Near-duplicates by MinHash over word shingles (datasketch), and n-grams for decontamination."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import Any

from inloop.trace.trajectory import Trajectory, plain

_WORD = re.compile(r"\w+|[^\w\s]")
SHINGLE = 5
PERMUTATIONS = 64


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def grams(tokens: list[str], size: int) -> set[int]:
    """32-bit hashes of all runs of `size` words; a shorter text is one run."""
    if len(tokens) < size:
        return {zlib.crc32(" ".join(tokens).encode("utf-8", "replace"))} if tokens else set()
    return {
        zlib.crc32(" ".join(tokens[i : i + size]).encode("utf-8", "replace")) for i in range(len(tokens) - size + 1)
    }


def said(trajectory: Trajectory) -> str:
    """What was asked, said and seen; the system prompt is the same for all, so it tells nothing apart."""
    return "\n".join(plain(n.message) for n in trajectory.nodes if n.message.role != "system")


class NearDuplicates:
    """A screen: refuses what repeats an earlier trajectory to at least `threshold` (Jaccard, estimated)."""

    def __init__(self, threshold: float) -> None:
        from datasketch import MinHashLSH

        self.threshold = threshold
        self._index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
        self._hashes: dict[str, Any] = {}

    def __call__(self, trajectory: Trajectory) -> str:
        mine = _minhash(grams(words(said(trajectory)), SHINGLE))
        for key in self._index.query(mine):
            if mine.jaccard(self._hashes[key]) >= self.threshold:
                return "near-duplicate"
        key = str(len(self._hashes))
        self._index.insert(key, mine)
        self._hashes[key] = mine
        return ""


def _minhash(hashes: Iterable[int]) -> Any:
    import numpy as np
    from datasketch import MinHash

    sketch = MinHash(num_perm=PERMUTATIONS, hashfunc=_as_is, scheme="affine32")
    values = np.fromiter(hashes, dtype=np.uint32)
    if len(values):
        sketch.update_batch(values)
    return sketch


def _as_is(value: Any) -> int:
    """The shingles are hashes already."""
    return int(value)
