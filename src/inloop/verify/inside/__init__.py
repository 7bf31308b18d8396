"""What runs inside a verifying sandbox: standard library (and pytest) only, never the rest of the package."""
