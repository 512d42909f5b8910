"""The declarations of all measures, their names, and their values."""

from goodgain.measures.good_gain import MEASURES

__all__ = ["MEASURES"]
