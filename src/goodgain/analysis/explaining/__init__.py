"""Explains a difference between two systems: which documents, which iterations, which words of the queries."""
