"""Reads the results in the output of tools, for all trace formats."""
