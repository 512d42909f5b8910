"""Compares systems query by query: differences, tests, tables, and requirements for continuous integration."""
