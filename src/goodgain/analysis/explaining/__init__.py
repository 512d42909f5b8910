"""Explains the difference of two systems by documents, iterations and searches."""
