"""Declares measures, parses their names, and computes their values."""

from goodgain.measures.families import MEASURES

__all__ = ["MEASURES"]
