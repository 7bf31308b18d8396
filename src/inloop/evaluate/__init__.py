"""Held-out rollouts, pass@k, intervals, paired comparison, promotion gate."""
