"""Selects documents to judge, and aggregates the grades of several judges."""
