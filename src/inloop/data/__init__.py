"""Trajectories -> token samples: selection with counted drops, completion mask, audit, coloured view."""
