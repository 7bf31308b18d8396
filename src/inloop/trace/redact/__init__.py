"""Secrets and names out of trajectories: found by detect-secrets and our rules, replaced by stable placeholders."""
