"""Small things for pockets."""

from importlib.metadata import version

from pocket.text import shorten, spans
from pocket.money import Purse, split_evenly

__version__ = version("pocket")
__all__ = ["Purse", "shorten", "spans", "split_evenly"]
