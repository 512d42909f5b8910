"""Compares systems query by query: differences, tests, tables, and requirements for continuous integration."""

from goodgain.comparing.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
