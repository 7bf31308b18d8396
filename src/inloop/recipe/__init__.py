"""The public stages in order, from one TOML: what `inloop quickstart` and `inloop train` run."""
