"""Analyses of scores: comparisons, explanations, curves, pictures and reports."""
