"""The same tasks and sandbox as a first-class OpenEnv environment."""
