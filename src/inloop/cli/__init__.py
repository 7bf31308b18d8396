"""One file a command group: parse, call, print; no logic."""
