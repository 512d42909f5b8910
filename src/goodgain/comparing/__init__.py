"""Compares systems: takes their scores query by query to differences, tests, tables and a gate."""

from goodgain.comparing.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
