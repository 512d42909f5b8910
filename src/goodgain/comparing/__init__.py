"""Compares systems query by query: differences, tests, tables, and requirements for continuous integration."""

from goodgain.comparing.compare_systems import compare
from goodgain.comparing.comparison import Comparison

__all__ = ["Comparison", "compare"]
