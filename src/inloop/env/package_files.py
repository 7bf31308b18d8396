"""The files of an OpenEnv package, as `openenv init` lays them out. `@NAME@`, `@CLASS@` and the like are filled in."""

from __future__ import annotations

INIT = '''"""@COUNT@ coding tasks as an OpenEnv environment."""

from .client import @CLASS@Env
from .models import @CLASS@Action, @CLASS@Observation, @CLASS@State

__all__ = ["@CLASS@Action", "@CLASS@Env", "@CLASS@Observation", "@CLASS@State"]
'''

MODELS = '''"""What goes over the wire."""

from inloop.env.models import InloopAction as @CLASS@Action
from inloop.env.models import InloopObservation as @CLASS@Observation
from inloop.env.models import InloopState as @CLASS@State

__all__ = ["@CLASS@Action", "@CLASS@Observation", "@CLASS@State"]
'''

CLIENT = '''"""The client: one call in flight, a lost episode raises SessionLost."""

from inloop.env.client import InloopEnv, SessionLost

try:
    from .models import @CLASS@Action
except ImportError:  # run from the folder itself
    from models import @CLASS@Action


class @CLASS@Env(InloopEnv):
    pass


__all__ = ["@CLASS@Action", "@CLASS@Env", "SessionLost"]
'''

APP = '''"""The server: `uvicorn server.app:app`, or `python server/app.py`.

INLOOP_ENV_TOKEN is asked for on every route; INLOOP_ENV_AUTH=none asks for none. MAX_CONCURRENT_ENVS, 64 if unset."""

import argparse
from pathlib import Path

from inloop.env.app import package_app

ROOT = Path(__file__).resolve().parents[1]
app = package_app(ROOT, name="@NAME@")


def main():
    import uvicorn

    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    args = parser.parse_args()
    uvicorn.run(app, host=args.host, port=args.port, log_level="warning")


if __name__ == "__main__":
    main()
'''

DOCKERFILE = """# Bubblewrap needs user namespaces: where the engine forbids them the server says so and does not start.
FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends git patch && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 env
WORKDIR /app/env
COPY pyproject.toml README.md __init__.py models.py client.py ./
COPY server server
RUN pip install --no-cache-dir @DEPENDENCIES@
COPY . .
USER env
ENV PYTHONPATH=/app/env/vendor:/app/env @AUTH@
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "server.app:app", "--host", "0.0.0.0", "--port", "8000"]
"""

PYPROJECT = """[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "openenv-@DASHED@"
version = "0.1.0"
description = "@COUNT@ coding tasks as an OpenEnv environment"
requires-python = ">=3.11"
dependencies = [
@LISTED@
]

[project.scripts]
server = "@NAME@.server.app:main"
@DASHED@-server = "@NAME@.server.app:main"

[tool.setuptools]
packages = ["@NAME@", "@NAME@.server"]
package-dir = { "@NAME@" = ".", "@NAME@.server" = "server" }

[tool.setuptools.package-data]
"@NAME@" = ["openenv.yaml", "validation/*"]
"""

README = """---
title: @CLASS@
sdk: docker
app_port: 8000
pinned: false
tags:
  - openenv
---

# @NAME@

@COUNT@ coding tasks in isolated sandboxes, judged by hidden tests; made by `inloop env init`.

`tasks/` holds hidden tests and solutions: keep the repository private. Set the secret `INLOOP_ENV_TOKEN`; clients send
it as `X-Inloop-Token` (or `Authorization: Bearer`). `vendor/` is a copy of inloop, so that nothing else has to be had.

    from @NAME@ import @CLASS@Action, @CLASS@Env

    with @CLASS@Env(base_url=URL, token=TOKEN) as env:
        start = env.reset(split="@SPLIT@", index=0)
        seen = env.step(@CLASS@Action(tool="bash", command="ls"))
        end = env.step(@CLASS@Action(tool="submit"))
        print(end.reward, end.done)
"""

SOLVE = """#!/bin/sh
# The oracle: `sh validation/solve.sh URL` solves the task @TASK@ and prints the reward.
exec python3 - "$1" "$(dirname "$0")/runtime.json" <<'END'
import json, os, sys
from openenv.core import GenericEnvClient

plan = json.load(open(sys.argv[2]))
token = os.environ.get("INLOOP_ENV_TOKEN")
with GenericEnvClient(sys.argv[1], headers={"X-Inloop-Token": token} if token else None) as env:
    env.reset(seed=plan["reset"]["seed"], **plan["reset"]["options"])
    for action in plan["actions"]:
        last = env.step(action)
print("reward", last.reward)
END
"""
