"""The agent in one's own repository: a copy, a sandbox, a diff, and a person who says yes."""
