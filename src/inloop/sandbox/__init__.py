"""Where: one protocol, a ladder of backends, limits, leases and the janitor."""
