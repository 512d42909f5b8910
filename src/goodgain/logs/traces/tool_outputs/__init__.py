"""Reads the results out of what a tool returned, for every format."""
