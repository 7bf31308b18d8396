"""One HTML file, and a live local page."""
