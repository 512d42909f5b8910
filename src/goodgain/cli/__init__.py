"""The goodgain command: the program, and a file for each group of its commands."""

from goodgain.cli.program import main

__all__ = ["main"]
