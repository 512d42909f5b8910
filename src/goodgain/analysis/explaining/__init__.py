"""Explains the difference between two systems by documents, iterations and searches."""
