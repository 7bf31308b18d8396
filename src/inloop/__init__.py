"""inloop: train coding agents in the loop they run in."""

__version__ = "0.1.0"
