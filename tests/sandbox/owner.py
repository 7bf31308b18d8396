"""An owner to be killed: opens a sandbox with processes in it, says what it holds, and waits."""

import json
import os
import sys
import time

sys.path[:0] = sys.argv[1].split(os.pathsep)
from pathlib import Path  # noqa: E402

from inloop.sandbox.base import SandboxSpec  # noqa: E402
from inloop.sandbox.bubblewrap import Bubblewrap  # noqa: E402

box = Bubblewrap().open(SandboxSpec(workspace=Path(sys.argv[2]), owner="to be killed"))
box.run("(setsid sleep 3000 &); nohup sleep 3001 & head -c 1000000 /dev/zero > big")
launched = box._launched
print(
    json.dumps(
        {
            "slot": launched.slot.pid,
            "uid": launched.slot.uid,
            "pid": launched.pid,
            "groups": launched.slot.groups,
            "keeper": launched.pool.process.pid,
            "folder": str(launched.lease.folder),
        }
    ),
    flush=True,
)
time.sleep(300)
