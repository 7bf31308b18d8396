"""Writers of foreign formats; each names what the format can't hold."""
