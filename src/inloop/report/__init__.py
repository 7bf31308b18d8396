"""What a run came to, for people: one HTML page, and a local page that follows it."""
