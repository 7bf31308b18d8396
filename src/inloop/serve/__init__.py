"""A checkpoint behind an OpenAI-compatible endpoint, parity, export, the agent in your own repository."""
