"""Declares measures, parses their names, and computes their values."""

from goodgain.measures.good_gain import MEASURES

__all__ = ["MEASURES"]
