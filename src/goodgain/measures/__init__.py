"""The measures: their declarations, their names, and their values."""

from goodgain.measures.good_gain import MEASURES

__all__ = ["MEASURES"]
