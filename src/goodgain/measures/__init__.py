"""The declarations of all measures, the parser of their names, and the computation of their values."""

from goodgain.measures.good_gain import MEASURES

__all__ = ["MEASURES"]
