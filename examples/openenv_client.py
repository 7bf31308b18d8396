"""Plain OpenEnv against `inloop env serve --no-auth --tasks TASKS`: python examples/openenv_client.py URL"""

import sys

from openenv.core import GenericEnvClient

with GenericEnvClient(sys.argv[1]) as env:
    start = env.reset(split="train", index=0)
    print(start.observation["text"])
    print(env.step({"tool": "bash", "command": "ls"}).observation["text"])
    print(env.step({"tool": "read", "path": "calc.py"}).observation["text"])
    env.step({"tool": "bash", "command": "sed -i 's/a - b/a + b/' calc.py"})
    print(env.step({"tool": "test"}).observation["text"])
    end = env.step({"tool": "submit"})
    print("done", end.done)
    print("reward", end.reward)
