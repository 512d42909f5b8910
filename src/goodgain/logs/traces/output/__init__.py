"""Writes the results frame to files, and makes runs from it."""
