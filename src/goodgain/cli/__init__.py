"""The goodgain command: the program, and one file per group of commands."""

from goodgain.cli.program import main

__all__ = ["main"]
