"""Scripts that run inside the builder's sandbox; they import nothing of ours."""
