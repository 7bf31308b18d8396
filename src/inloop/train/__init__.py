"""SFT and GRPO over TRL; `trl_async.py` is the only file that touches its experimental part."""

import os

# TRL warns on every import of what we pin and hold with contract tests; its hub telemetry would need a network.
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
