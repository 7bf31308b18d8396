"""Who acts: the dialect, the tools, the guides and sensors, and the loop that joins them."""
