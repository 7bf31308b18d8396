"""Who acts: dialect, tools, guides, sensors, the loop on one screen; external agents behind the capture proxy."""
