"""What happened: the message forest, its store, readers and writers, redaction, invariants, the terminal view."""
