"""Runs every probe and attack as whoever starts it and prints what failed; for an ordinary user, who has no pytest.

Arguments: folders for sys.path, separated by ':'."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path[:0] = sys.argv[1].split(os.pathsep)
spec = importlib.util.spec_from_file_location("sandbox_checks", Path(__file__).with_name("checks.py"))
assert spec and spec.loader
checks: Any = importlib.util.module_from_spec(spec)
sys.modules["sandbox_checks"] = checks
spec.loader.exec_module(checks)


def probes() -> dict[str, str]:
    with checks.targets() as aim, checks.opened() as inside, checks.unisolated() as outside:
        return {p.name: f"{checks.ask(p, inside, aim)} {checks.ask(p, outside, aim)}" for p in checks.PROBES}


def attacks() -> dict[str, str]:
    told = {}
    for attack in checks.ATTACKS:
        with checks.opened() as box:
            try:
                told[attack.name] = checks.endure(attack, box).limit
            except Exception:
                told[attack.name] = traceback.format_exc()
            box.close()
            if left := checks.left_of(box):
                told[attack.name] = f"left {left}"
    return told


def many() -> list[str]:
    def work(number: int) -> None:
        with checks.opened() as one:
            assert one.run(f"echo {number}; cat a.txt").stdout == f"{number}\npristine\n"

    return [repr(fault) for fault in checks.in_threads(8, work)]


def protocol() -> dict[str, Any]:
    with checks.opened(env={"V": "1"}) as box:
        box.run("export W=2; cd sub; echo more >> ../a.txt")
        out = {"state": box.run("echo $V$W; pwd").stdout, "diff": box.diff().changed["a.txt"].decode()}
        box.write("x/y", b"data")
        box.reset()
        out["reset"] = box.run("echo $W; pwd; ls").stdout
        out["uid"] = box._launched.slot.uid
        out["isolation"] = [box.isolation.level, box.isolation.limits]
    return out


print(
    json.dumps({"uid": os.geteuid(), "probes": probes(), "attacks": attacks(), "many": many(), "protocol": protocol()})
)
