"""SFT and GRPO over TRL; `trl_async.py` is the only file that touches its experimental part."""
