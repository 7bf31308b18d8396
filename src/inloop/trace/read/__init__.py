"""Readers of foreign formats: one file a format, found by content, streaming, nothing dropped uncounted."""
